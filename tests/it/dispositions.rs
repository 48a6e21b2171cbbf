//! The actions of signals in the programs that the tests start: the defaults, whatever the tests themselves were started to
//! ignore (by `nohup`, or by a shell that runs them in the background).

use std::fs;
use std::sync::Once;

use tokio::signal::unix::{SignalKind, signal};

/// Starts programs with the default actions of the signals that end a run: a signal that has a handler is reset when a
/// program is executed, one that is ignored is not. The handlers here do nothing, like the ignore that they replace.
pub fn restore_defaults() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = mask.map_or(0, |mask| u64::from_str_radix(mask.trim(), 16).expect("a mask of signals"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
        let _entered = runtime.enter();
        for kind in [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::terminate()] {
            if ignored & 1 << (kind.as_raw_value() - 1) != 0 {
                drop(signal(kind).expect("a handler can be installed"));
            }
        }
    });
}
