"""An environment of Harbor without containers: this machine's files under a layer of their own, for trying an adapter.

    PYTHONPATH=packaging/harbor harbor run -e local:LocalEnvironment …

Root on Linux only. It hides nothing of the machine and walls nothing off: for tasks that one wrote oneself.
"""
import asyncio
import os
import shutil
import tempfile
from pathlib import Path

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities

# Commands see this machine's files; what they write is in `upper`.
ENTER = """
mount --make-rprivate / && mount -t overlay overlay -o lowerdir=/,upperdir="$1/upper",workdir="$1/work" "$1/merged" &&
mount --rbind /proc "$1/merged/proc" && mount --rbind /dev "$1/merged/dev" && mount --rbind /sys "$1/merged/sys" &&
exec chroot "$1/merged" /bin/bash -c 'mkdir -p "$1" && cd "$1" && exec /bin/bash -c "$2"' - "$2" "$3"
"""


class LocalEnvironment(BaseEnvironment):
    @staticmethod
    def type():
        return "local"

    @property
    def capabilities(self):
        return EnvironmentCapabilities()

    def _validate_definition(self):
        if os.getuid() != 0:
            raise RuntimeError("a local environment needs root")

    async def start(self, force_build):
        # A file system in memory: a layer cannot lie upon another one.
        self.room = Path(tempfile.mkdtemp(prefix="harbor-", dir="/dev/shm"))
        for name in ("upper", "work", "merged"):
            (self.room / name).mkdir()
        await self.exec("mkdir -p /logs/agent /logs/verifier /logs/artifacts /app")

    async def stop(self, delete):
        shutil.rmtree(self.room, ignore_errors=True)

    async def upload_file(self, source_path, target_path):
        target = self._inside(target_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source_path, target)

    async def upload_dir(self, source_dir, target_dir):
        shutil.copytree(source_dir, self._inside(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path, target_path):
        shutil.copy2(self._inside(source_path), target_path)

    async def download_dir(self, source_dir, target_dir):
        shutil.copytree(self._inside(source_dir), target_dir, dirs_exist_ok=True)

    def _inside(self, path):
        return self.room / "upper" / str(path).lstrip("/")

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None):
        variables = dict(PATH=os.environ["PATH"], HOME="/tmp/home", TMPDIR="/tmp", **self._persistent_env, **(env or {}))
        process = await asyncio.create_subprocess_exec(
            "unshare", "-m", "/bin/bash", "-c", ENTER, "-", str(self.room), cwd or "/app", command,
            env=variables, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
        try:
            out, err = await asyncio.wait_for(process.communicate(), timeout_sec)
        except asyncio.TimeoutError:
            process.kill()
            return ExecResult(stdout="", stderr="out of time", return_code=124)
        return ExecResult(stdout=out.decode(errors="replace"), stderr=err.decode(errors="replace"), return_code=process.returncode)
