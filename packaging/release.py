"""Puts built programs into packages, the same bytes each time.

    release.py --url BASE --out DIR TARGET=PROGRAM…

TARGET is a Rust target. BASE is the address under which the files will lie, for the packages that name it. SOURCE_DATE_EPOCH
is the time of everything in them. Made are: an archive for each target, a .deb for each Linux, npm packages (one a target, and
`agent-cli`, which chooses), an OCI image for each Linux, a Homebrew formula, agent.json for the registry of the Agent Client
Protocol, an SBOM (CycloneDX), and SHA256SUMS.
"""
import argparse
import gzip
import hashlib
import io
import json
import os
import pathlib
import subprocess
import tarfile
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])
PACKAGE = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]
NAME, VERSION = PACKAGE["name"], PACKAGE["version"]
# Rust target: names in npm (os, cpu), Debian, OCI, the ACP registry, Homebrew.
TARGETS = {
    "x86_64-unknown-linux-musl": dict(npm=("linux", "x64"), deb="amd64", oci="amd64", acp="linux-x86_64", brew=("linux", "intel")),
    "aarch64-unknown-linux-musl": dict(npm=("linux", "arm64"), deb="arm64", oci="arm64", acp="linux-aarch64", brew=("linux", "arm")),
    "x86_64-pc-windows-gnu": dict(npm=("win32", "x64"), acp="windows-x86_64"),
    "aarch64-apple-darwin": dict(npm=("darwin", "arm64"), acp="darwin-aarch64", brew=("macos", "arm")),
    "x86_64-apple-darwin": dict(npm=("darwin", "x64"), acp="darwin-x86_64", brew=("macos", "intel")),
}
CERTIFICATES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")


def pack(files):
    """A compressed archive of (path, content, mode); a directory has no content."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=EPOCH) as zipped, \
            tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive:
        made = set()
        for path, content, mode in sorted(files, key=lambda file: file[0]):
            for parent in reversed(pathlib.PurePosixPath(path).parents[:-1]):
                if str(parent) not in made:
                    made.add(str(parent))
                    add(archive, str(parent), None, 0o755)
            add(archive, path, content, mode)
    return packed.getvalue()


def add(archive, path, content, mode):
    entry = tarfile.TarInfo(path)
    entry.mtime, entry.mode, entry.uname, entry.gname = EPOCH, mode, "root", "root"
    entry.type = tarfile.DIRTYPE if content is None else tarfile.REGTYPE
    entry.size = len(content or b"")
    archive.addfile(entry, io.BytesIO(content or b""))


def zip_up(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content, mode in sorted(files):
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.external_attr, entry.compress_type = mode << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return packed.getvalue()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def documents():
    kept = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("LICENSE*"))]
    return [(path.name, path.read_bytes(), 0o644) for path in kept if path.exists()]


def write_deb(target, program, generated):
    installed = [("./usr/bin/agent", program, 0o755)]
    places = {
        "agent.1": "./usr/share/man/man1/agent.1.gz", "bash": "./usr/share/bash-completion/completions/agent",
        "zsh": "./usr/share/zsh/vendor-completions/_agent", "fish": "./usr/share/fish/vendor_completions.d/agent.fish",
    }
    for name, place in places.items():
        content = generated[name]
        installed.append((place, gzip.compress(content, mtime=EPOCH) if place.endswith(".gz") else content, 0o644))
    installed += [(f"./usr/share/doc/agent/{name}", content, 0o644) for name, content, _ in documents()]
    size = sum(len(content) for _, content, _ in installed) // 1024
    control = (
        f"Package: agent\nVersion: {VERSION}\nArchitecture: {target['deb']}\nMaintainer: agent\nInstalled-Size: {size}\n"
        f"Recommends: git, ca-certificates\nSection: utils\nPriority: optional\nDescription: {PACKAGE['description']}\n"
    )
    sums = "".join(f"{hashlib.md5(content).hexdigest()}  {path[2:]}\n" for path, content, _ in sorted(installed))
    members = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", pack([("./control", control.encode(), 0o644), ("./md5sums", sums.encode(), 0o644)])),
        ("data.tar.gz", pack(installed)),
    ]
    deb = b"!<arch>\n"
    for name, content in members:
        deb += f"{name:<16}{EPOCH:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode() + content
        deb += b"\n" * (len(content) % 2)
    return deb


def write_oci(target, program):
    files = [("usr/bin/agent", program, 0o755), ("tmp", None, 0o1777), ("work", None, 0o777), ("home", None, 0o777)]
    if CERTIFICATES.exists():
        files.append(("etc/ssl/certs/ca-certificates.crt", CERTIFICATES.read_bytes(), 0o644))
    plain = gzip.decompress(layer := pack(files))
    config = json.dumps({
        "architecture": target["oci"], "os": "linux",
        "config": {"Entrypoint": ["/usr/bin/agent"], "WorkingDir": "/work", "Env": ["PATH=/usr/bin", "HOME=/home"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha256(plain)}"]},
    }, sort_keys=True).encode()

    def describe(kind, content):
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{sha256(content)}", "size": len(content)}

    manifest = json.dumps({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": describe("config.v1+json", config), "layers": [describe("layer.v1.tar+gzip", layer)],
    }, sort_keys=True).encode()
    index = {"schemaVersion": 2, "manifests": [dict(describe("manifest.v1+json", manifest), annotations={"org.opencontainers.image.ref.name": VERSION})]}
    image = io.BytesIO()
    with tarfile.open(fileobj=image, mode="w", format=tarfile.PAX_FORMAT) as archive:
        add(archive, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}', 0o644)
        add(archive, "index.json", json.dumps(index, sort_keys=True).encode(), 0o644)
        for blob in (config, layer, manifest):
            add(archive, f"blobs/sha256/{sha256(blob)}", blob, 0o644)
    return image.getvalue()


def write_npm(target, program):
    system, processor = TARGETS[target]["npm"]
    binary = "agent.exe" if system == "win32" else "agent"
    name = f"agent-cli-{system}-{processor}"
    about = {
        "name": name, "version": VERSION, "description": f"{PACKAGE['description']} ({system}, {processor})",
        "license": PACKAGE["license"], "os": [system], "cpu": [processor], "files": [binary], "preferUnplugged": True,
    }
    return name, pack([("package/package.json", json.dumps(about, indent=2).encode() + b"\n", 0o644), (f"package/{binary}", program, 0o755)])


def write_npm_wrapper(names):
    about = {
        "name": "agent-cli", "version": VERSION, "description": PACKAGE["description"], "license": PACKAGE["license"],
        "bin": {"agent": "agent.js"}, "files": ["agent.js"], "engines": {"node": ">=18"},
        "optionalDependencies": {name: VERSION for name in sorted(names)},
    }
    return pack([
        ("package/package.json", json.dumps(about, indent=2).encode() + b"\n", 0o644),
        ("package/agent.js", (ROOT / "packaging/npm/agent.js").read_bytes(), 0o755),
        ("package/README.md", (ROOT / "README.md").read_bytes(), 0o644),
    ])


def write_formula(url, sums):
    lines = ["class Agent < Formula", f'  desc "{PACKAGE["description"].rstrip(".")}"', f'  version "{VERSION}"',
             f'  license any_of: [{", ".join(json.dumps(part) for part in PACKAGE["license"].split(" OR "))}]', ""]
    for system in ("macos", "linux"):
        of_system = {target: about["brew"][1] for target, about in TARGETS.items()
                     if target in sums and about.get("brew", [""])[0] == system}
        if of_system:
            lines.append(f"  on_{system} do")
            for target, processor in sorted(of_system.items()):
                file, digest = sums[target]
                lines += [f"    on_{processor} do", f'      url "{url}/{file}"', f'      sha256 "{digest}"', "    end"]
            lines += ["  end", ""]
    lines += ["  def install", '    bin.install "agent"', '    generate_completions_from_executable(bin/"agent", "completions")',
              '    (man1/"agent.1").write Utils.safe_popen_read(bin/"agent", "man")', "  end", "", "  test do",
              '    assert_match "scripted demo", shell_output("#{bin}/agent run -m demo hello")', "  end", "end"]
    return "\n".join(lines) + "\n"


def write_registry(url, sums):
    entry = json.loads((ROOT / "packaging/acp/agent.json").read_text())
    entry["version"] = VERSION
    entry["distribution"] = {"binary": {
        TARGETS[target]["acp"]: {
            "archive": f"{url}/{file}", "cmd": "./agent.exe" if "windows" in target else "./agent", "args": ["acp"],
        } for target, (file, _) in sorted(sums.items())
    }}
    return json.dumps(entry, indent=2) + "\n"


def write_sbom():
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--offline"]
    packages = json.loads(subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout)
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    sums = {(one["name"], one["version"]): one.get("checksum") for one in lock}
    used = {node["id"] for node in packages["resolve"]["nodes"]}
    components = []
    for one in sorted(packages["packages"], key=lambda one: (one["name"], one["version"])):
        if one["id"] not in used or one["name"] == NAME:
            continue
        component = {"type": "library", "name": one["name"], "version": one["version"],
                     "purl": f"pkg:cargo/{one['name']}@{one['version']}"}
        if one["license"]:
            component["licenses"] = [{"expression": one["license"].replace("/", " OR ")}]
        if digest := sums.get((one["name"], one["version"])):
            component["hashes"] = [{"alg": "SHA-256", "content": digest}]
        components.append(component)
    about = {"type": "application", "name": NAME, "version": VERSION, "licenses": [{"expression": PACKAGE["license"]}]}
    return json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
                       "metadata": {"component": about}, "components": components}, indent=1) + "\n"


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--url", required=True)
    options.add_argument("--out", required=True, type=pathlib.Path)
    options.add_argument("--generated", required=True, type=pathlib.Path)
    options.add_argument("programs", nargs="+")
    options = options.parse_args()
    out = options.out
    out.mkdir(parents=True, exist_ok=True)
    generated = {path.name: path.read_bytes() for path in options.generated.iterdir()}
    url, sums, packages = options.url.rstrip("/"), {}, []
    for target, path in (program.split("=", 1) for program in options.programs):
        about, program = TARGETS[target], pathlib.Path(path).read_bytes()
        windows = "windows" in target
        files = [("agent.exe" if windows else "agent", program, 0o755), *documents()]
        archive = zip_up(files) if windows else pack(files)
        file = f"agent-{VERSION}-{target}.{'zip' if windows else 'tar.gz'}"
        (out / file).write_bytes(archive)
        sums[target] = (file, sha256(archive))
        name, package = write_npm(target, program)
        (out / f"{name}-{VERSION}.tgz").write_bytes(package)
        packages.append(name)
        if "deb" in about:
            (out / f"agent_{VERSION}_{about['deb']}.deb").write_bytes(write_deb(about, program, generated))
            (out / f"agent-{VERSION}-{about['oci']}.oci.tar").write_bytes(write_oci(about, program))
    (out / f"agent-cli-{VERSION}.tgz").write_bytes(write_npm_wrapper(packages))
    (out / "agent.rb").write_text(write_formula(url, sums))
    (out / "agent.json").write_text(write_registry(url, sums))
    (out / "sbom.cdx.json").write_text(write_sbom())
    files = sorted(path for path in out.iterdir() if path.name != "SHA256SUMS")
    (out / "SHA256SUMS").write_text("".join(f"{sha256(path.read_bytes())}  {path.name}\n" for path in files))


main()
