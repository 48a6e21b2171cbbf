//! Recognises addresses of the public internet: everything else could be this machine, its network, or the metadata
//! service of its cloud.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// True if anybody on the internet could reach `address`. An IPv6 address that carries an IPv4 one is judged by that.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match extract_embedded(address) {
            Some(inner) => is_public_v4(inner),
            None => is_public_v6(address),
        },
    }
}

#[expect(clippy::match_same_arms, reason = "a table: each row has its own reason")]
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        // This network, private, loopback; multicast, reserved, broadcast.
        (0 | 10 | 127 | 224..=255, _, _) => false,
        // Shared by carriers; link-local, where clouds serve their metadata.
        (100, 64..=127, _) | (169, 254, _) => false,
        // Private.
        (172, 16..=31, _) | (192, 168, _) => false,
        // Protocol assignments, relays to IPv6, benchmarks.
        (192, 0, 0) | (192, 88, 99) | (198, 18 | 19, _) => false,
        // Documentation.
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => false,
        _ => true,
    }
}

/// True for public IPv6 addresses: only 2000::/3 is assigned, and not all of it to hosts.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    let given_out = a & 0xe000 == 0x2000;
    let protocols = a == 0x2001 && b < 0x0200;
    let documentation = (a == 0x2001 && b == 0x0db8) || (a == 0x3fff && b < 0x1000);
    given_out && !protocols && !documentation
}

/// The IPv4 address inside mapped, translated (64:ff9b::/96) and tunnelled (2002::/16) ones.
fn extract_embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let from = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            Some(from(high, low))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_public() {
        let public = "1.1.1.1 8.8.8.8 172.15.0.1 172.32.0.1 100.63.0.1 192.0.1.1 223.255.255.255 \
                      2606:4700:4700::1111 2a00:1450::1 ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::1";
        let private = "0.0.0.0 10.1.2.3 127.0.0.1 127.255.255.254 100.64.0.1 100.100.100.200 169.254.169.254 172.16.0.1 \
                       172.31.255.255 192.168.1.1 192.0.0.192 198.18.0.1 203.0.113.9 224.0.0.1 240.0.0.1 255.255.255.255 \
                       :: ::1 fe80::1 fec0::1 fc00::1 fd00:ec2::254 ff02::1 2001:db8::1 2001::1 3fff::1 100::1 \
                       ::ffff:127.0.0.1 ::ffff:169.254.169.254 ::127.0.0.1 64:ff9b::7f00:1 64:ff9b:1::1 2002:7f00:1::1";
        for (list, expected) in [(public, true), (private, false)] {
            for text in list.split_whitespace() {
                let address = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
                assert_eq!(is_public(address), expected, "{text}");
            }
        }
    }
}
