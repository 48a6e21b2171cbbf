"""Workers beside a real queue and a real database: workers.py PROGRAM NATS_SERVER PG_BIN ROOM

Tasks are published while workers are killed, the queue and the database are restarted, the network to both is cut, and messages
that are no tasks arrive; then each task has one result. Prints its counts.
"""
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PROGRAM, NATS, PG, ROOM = sys.argv[1:]
random.seed(int(os.environ.get("AGENT_TEST_SEED", "7")))


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Cable:
    """A port that leads to another one. While it is cut nothing passes and nothing is closed, as when packets are lost."""

    def __init__(self, target):
        self.target, self.whole = target, threading.Event()
        self.whole.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near, _ = self.listener.accept()
            threading.Thread(target=self.join, args=(near,), daemon=True).start()

    def join(self, near):
        self.whole.wait()
        try:
            far = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            near.close()
            return
        for end in (near, far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for ends in ((near, far), (far, near)):
            threading.Thread(target=self.carry, args=ends, daemon=True).start()

    def carry(self, source, sink):
        try:
            while data := source.recv(65536):
                self.whole.wait()
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Collector(BaseHTTPRequestHandler):
    """Keeps what telemetry is sent."""

    def do_POST(self):
        COLLECTED.extend(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


COLLECTED = bytearray()
COLLECTOR = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
threading.Thread(target=COLLECTOR.serve_forever, daemon=True).start()
NATS_PORT, PG_PORT = free_port(), free_port()
CABLES = [Cable(NATS_PORT), Cable(PG_PORT)]
shutil.rmtree(ROOM, ignore_errors=True)
for name in ("work", "home/.config/agent/models", "home/.config/agent/prompts/label", "pg"):
    os.makedirs(f"{ROOM}/{name}")
ENV = dict(
    PATH=os.environ["PATH"],
    HOME=f"{ROOM}/home",
    AGENT_QUEUE=f"nats://127.0.0.1:{CABLES[0].port}",
    AGENT_STORE=f"postgres://postgres@127.0.0.1:{CABLES[1].port}/postgres",
)


def write(path, text):
    with open(f"{ROOM}/{path}", "w") as file:
        file.write(text)


def model(delay):
    write("home/.config/agent/models/quick.yaml", f'provider: scripted\nscript:\n  - {{ text: "done", delay: {delay} }}\n')


# The database refuses root.
AS_OWNER = []
if os.getuid() == 0:
    shutil.chown(f"{ROOM}/pg", "postgres")
    directory = ROOM
    while directory != "/":
        os.chmod(directory, os.stat(directory).st_mode | 0o111)
        directory = os.path.dirname(directory)
    AS_OWNER = ["runuser", "-u", "postgres", "--"]


def pg_ctl(*arguments):
    options = f"-p {PG_PORT} -c listen_addresses=127.0.0.1 -c unix_socket_directories={ROOM}/pg"
    command = [*AS_OWNER, f"{PG}/pg_ctl", "-w", "-D", f"{ROOM}/pg/data", "-l", f"{ROOM}/pg/log", "-o", options]
    subprocess.run([*command, *arguments], check=True, stdout=subprocess.DEVNULL, cwd="/")


def start_nats():
    log = open(f"{ROOM}/nats.log", "a")
    queue = subprocess.Popen([NATS, "-a", "127.0.0.1", "-p", str(NATS_PORT), "-js", "-sd", f"{ROOM}/nats"], stderr=log)
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", NATS_PORT)).close()
            return queue
        except OSError:
            time.sleep(0.05)
    raise SystemExit("the queue does not start")


def agent(*arguments, stdin="", code=0):
    done = subprocess.run([PROGRAM, *arguments], input=stdin, capture_output=True, text=True, env=ENV, cwd=f"{ROOM}/work")
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    return done


def worker(jobs=8, *arguments):
    log = open(f"{ROOM}/worker.log", "a")
    return subprocess.Popen(
        [PROGRAM, "worker", "-m", "quick", "--jobs", str(jobs), *arguments], env=ENV, cwd=f"{ROOM}/work", stderr=log)


def stop(workers, code=143):
    for one in workers:
        one.send_signal(signal.SIGTERM)
    for one in workers:
        assert one.wait(60) == code, one.returncode


def collect(task, items, *options, code=0):
    lines = "".join(f"{item}\n" for item in items)
    done = agent("map", "--queue", "-", "--collect", *options, task, stdin=lines, code=code)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == len(items) == len({row["id"] for row in rows}), (len(rows), len(items))
    return rows


def count(sql):
    command = [*AS_OWNER, f"{PG}/psql", "-h", "127.0.0.1", "-p", str(PG_PORT), "-U", "postgres", "-tAc", sql]
    return int(subprocess.run(command, check=True, capture_output=True, text=True, cwd="/").stdout)


def publish_raw(subject, payload):
    with socket.create_connection(("127.0.0.1", NATS_PORT)) as line:
        line.sendall(f"CONNECT {{}}\r\nPUB {subject} {len(payload)}\r\n".encode() + payload + b"\r\nPING\r\n")
        while b"PONG" not in line.recv(4096):
            pass


def until(is_so, what):
    for _ in range(1200):
        if is_so():
            return
        time.sleep(0.05)
    raise SystemExit(f"not within a minute: {what}")


subprocess.run([*AS_OWNER, f"{PG}/initdb", "-D", f"{ROOM}/pg/data", "-A", "trust"], check=True,
               stdout=subprocess.DEVNULL, cwd="/")
pg_ctl("start")
queue = start_nats()
try:
    # Nothing is made without being asked, and what is made is made once.
    model("10ms")
    assert "agent worker init" in agent("worker", code=11).stderr
    assert "are made" in agent("worker", "init").stdout
    assert "already" in agent("worker", "init").stdout

    # One task has one result; its session is the log's own lines; a second time nothing is done.
    one = worker()
    first = collect("Once: {{ item }}", range(100))
    assert all(row["exit_code"] == 0 and row["result"] == "done" for row in first), first[0]
    log = agent("worker", "session", first[0]["session"]).stdout
    assert json.loads(log.splitlines()[0]) and log.endswith("\n")
    assert collect("Once: {{ item }}", range(100)) == first
    assert count("SELECT count(*) FROM agent_results") == 100

    # What is no task lies with the dead; what does not fit the worker is refused.
    publish_raw("agent.tasks.x", b"hello")
    publish_raw("agent.tasks.x", b'{"v":2}')
    until(lambda: "given up                     2" in agent("worker", "status").stdout, "two messages are dead")
    write("home/.config/agent/prompts/label/v1.0.md", "---\ndescription: A label.\n---\nLabel it.\n")
    agent("map", "--queue", "-", "--prompt", "label@1.0", "--max-turns", "3", "{{ item }}", stdin="x\n", code=2)
    assert collect("With a prompt {{ item }}", ["x"], "--prompt", "label@1.0")[0]["exit_code"] == 0
    stop([one])

    # A prompt that is another one at the worker is not used.
    agent("map", "--queue", "-", "--prompt", "label@1.0", "Changed {{ item }}", stdin="x\n")
    write("home/.config/agent/prompts/label/v1.0.md", "---\ndescription: A label.\n---\nLabel it otherwise.\n")
    one = worker()
    refused = collect("Changed {{ item }}", ["x"], "--prompt", "label@1.0", code=1)[0]
    assert refused["exit_code"] == 3 and "fingerprint" in refused["reason"], refused
    stop([one])

    # The log of a running task is in the database; a worker that is told to end gives back what it cannot end.
    model("60s")
    write("home/.config/agent/agent.yaml", f"telemetry: {{ otlp_endpoint: 'http://127.0.0.1:{COLLECTOR.server_port}' }}\n")
    kept = count("SELECT count(DISTINCT session) FROM agent_sessions")
    one = worker(4, "--grace", "1s")
    agent("map", "--queue", "-", "Slow: {{ item }}", stdin="1\n2\n3\n")
    until(lambda: "running                      3" in agent("worker", "status").stdout, "three run")
    until(lambda: agent("worker", "status").stdout.count(", session ") == 3, "three sessions have lines")
    session = agent("worker", "status").stdout.split(", session ")[1].split()[0]
    assert "Slow: " in agent("worker", "session", session).stdout
    stop([one])
    assert not [files for _, _, files in os.walk(f"{ROOM}/home/.local/state/agent/worker") if files]
    model("10ms")
    one = worker()
    assert len(collect("Slow: {{ item }}", [1, 2, 3])) == 3
    # What was begun and given back is kept, beside what was done.
    assert count("SELECT count(DISTINCT session) FROM agent_sessions") == kept + 6
    stop([one])
    for name in (b"agent.queue.waiting", b"agent.queue.oldest_age", b"agent.tasks.finished", b"invoke_agent"):
        assert name in COLLECTED, name
    os.remove(f"{ROOM}/home/.config/agent/agent.yaml")
    one = worker()
    print("a worker that was told to end gave back 3 of 3 tasks, with the logs of what it had begun")

    # The queue and the database go away and come back.
    model("30ms")
    tasks = subprocess.Popen(
        [PROGRAM, "map", "--queue", "-", "--collect", "Away: {{ item }}"], env=ENV, cwd=f"{ROOM}/work",
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    tasks.stdin.write("".join(f"{item}\n" for item in range(600)))
    tasks.stdin.close()
    until(lambda: count("SELECT count(*) FROM agent_results") > 150, "tasks begin")
    pg_ctl("restart", "-m", "immediate")
    until(lambda: count("SELECT count(*) FROM agent_results") > 300, "tasks go on")
    queue.send_signal(signal.SIGKILL)
    queue.wait()
    time.sleep(1)
    queue = start_nats()
    rows = [json.loads(line) for line in tasks.stdout]
    assert tasks.wait() == 0 and len({row["id"] for row in rows}) == 600, len(rows)
    print("the database and the queue were restarted over 600 tasks: each has one result")
    stop([one])

    # The network to both is cut for a while.
    cut = float(os.environ.get("AGENT_TEST_CUT", "3"))
    before = count("SELECT count(*) FROM agent_results")
    one = worker()
    tasks = subprocess.Popen(
        [PROGRAM, "map", "--queue", "-", "--collect", "Cut: {{ item }}"], env=ENV, cwd=f"{ROOM}/work",
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    tasks.stdin.write("".join(f"{item}\n" for item in range(300)))
    tasks.stdin.close()
    until(lambda: count("SELECT count(*) FROM agent_results") > before + 50, "tasks begin")
    for cable in CABLES:
        cable.whole.clear()
    time.sleep(cut)
    for cable in CABLES:
        cable.whole.set()
    rows = [json.loads(line) for line in tasks.stdout]
    assert tasks.wait() == 0 and len({row["id"] for row in rows}) == 300, len(rows)
    assert count("SELECT count(*) FROM agent_results") - before == 300
    print(f"the network was cut for {cut:g} s over 300 tasks: each has one result")
    stop([one])

    # Workers are killed.
    model("20ms")
    kills, total = int(os.environ.get("AGENT_TEST_KILLS", "20")), int(os.environ.get("AGENT_TEST_TASKS", "1000"))
    before = count("SELECT count(*) FROM agent_results")
    workers = [worker() for _ in range(3)]
    tasks = subprocess.Popen(
        [PROGRAM, "map", "--queue", "-", "--collect", "Kills: {{ item }}"], env=ENV, cwd=f"{ROOM}/work",
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    tasks.stdin.write("".join(f"{item}\n" for item in range(total)))
    tasks.stdin.close()
    for _ in range(kills):
        time.sleep(random.uniform(0.02, 0.25))
        at = random.randrange(len(workers))
        workers[at].kill()
        workers[at].wait()
        workers[at] = worker()
    rows = [json.loads(line) for line in tasks.stdout]
    assert tasks.wait() == 0 and len({row["id"] for row in rows}) == total, len(rows)
    assert count("SELECT count(*) FROM agent_results") - before == total
    again = count("SELECT count(*) FROM agent_leases WHERE begun > 1")
    print(f"{kills} workers were killed over {total} tasks: each has one result; {again} were begun again")
    stop(workers)

    # Figures, for docs/scale.md.
    if os.environ.get("AGENT_TEST_FIGURES"):
        model("500ms")
        for number in (1, 2, 4):
            workers = [worker(4) for _ in range(number)]
            time.sleep(1)
            began = time.monotonic()
            collect(f"Figures {number}: {{{{ item }}}}", range(64))
            print(f"{number} workers of 4 jobs, a model of 500 ms: 64 tasks in {time.monotonic() - began:.1f} s")
            stop(workers)
        model("1ms")
        workers = [worker(32)]
        time.sleep(1)
        options = ["-m", "quick", "--jobs", "32", "--ephemeral"]
        lines = "".join(f"{item}\n" for item in range(2000))
        for name, work in [
            ("1 worker", lambda: (collect("Overhead {{ item }}", range(2000)), stop(workers))),
            ("without a queue", lambda: agent("map", *options, "Overhead {{ item }}", stdin=lines)),
        ]:
            began, before = time.monotonic(), os.times()
            work()
            spent, after = time.monotonic() - began, os.times()
            ours = after.children_user + after.children_system - before.children_user - before.children_system
            print(f"{name}, 32 jobs, a model of 1 ms: {spent / 2:.1f} ms a task, {ours / 2:.1f} ms of processor time")
        model("100s")
        one = worker(1)
        agent("map", "--queue", "-", "Killed: {{ item }}", stdin="1\n")
        running = "SELECT count(*) FROM agent_leases WHERE until <> 'infinity' AND begun = "
        until(lambda: count(running + "1") == 1, "the task begins")
        one.kill()
        one.wait()
        killed, other = time.monotonic(), worker(1)
        until(lambda: count(running + "2") == 1, "the task is begun again")
        print(f"a task whose worker was killed is begun again after {time.monotonic() - killed:.1f} s")
        other.kill()
        other.wait()
finally:
    queue.kill()
    pg_ctl("stop", "-m", "immediate")
