"""agent in Harbor, which runs Terminal-Bench and other tasks:

    PYTHONPATH=packaging/harbor harbor run -a agent:AgentCli -m PROVIDER/MODEL -p TASKS --ak program=PATH

`program` is a static program for the environment (.ci/release); without it, `agent` must be in the image. Keys come from
Harbor's environment (--ae OPENAI_API_KEY=…). The trajectory is ATIF, written by `agent session export`.
"""
import json
import os
import shlex

from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.installed.base import BaseInstalledAgent, with_prompt_template

LOGS = "/logs/agent"
KEYS = ["OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY", "AGENT_MODEL"]


class AgentCli(BaseInstalledAgent):
    capabilities = AgentCapabilities(atif=True)

    def __init__(self, *args, program=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.program = program

    @staticmethod
    def name():
        return "agent"

    def get_version_command(self):
        return "agent --version"

    def parse_version(self, stdout):
        return stdout.split()[-1]

    async def install(self, environment):
        if self.program:
            await environment.upload_file(self.program, "/tmp/agent")
            await self.exec_as_root(environment, "install -m 755 /tmp/agent /usr/local/bin/agent && rm /tmp/agent")
        await self.exec_as_agent(environment, "agent --version")

    @with_prompt_template
    async def run(self, instruction, environment, context):
        keys = {name: os.environ[name] for name in KEYS if name in os.environ}
        model = f"-m {shlex.quote(self.model_name)} " if self.model_name else ""
        # The container is the wall: commands may install what a task needs. The exit code is in the result, and a task that
        # ended with a limit is judged by its tests like any other.
        command = (
            f"mkdir -p {LOGS}; agent run {model}--approve all --sandbox off --stdin none -o json {shlex.quote(instruction)} "
            f">{LOGS}/result.json 2>{LOGS}/stderr.txt; "
            f"agent session export --to atif >{LOGS}/trajectory.json; true"
        )
        await self.exec_as_agent(environment, command, env=keys)

    def populate_context_post_run(self, context):
        result = self.logs_dir / "result.json"
        if not result.exists() or not result.read_text().strip():
            return
        run = json.loads(result.read_text())
        context.n_input_tokens = run["usage"]["input_tokens"]
        context.n_cache_tokens = run["usage"]["cached_input_tokens"]
        context.n_output_tokens = run["usage"]["output_tokens"]
        context.cost_usd = run["cost_usd"]
        context.metadata = {"status": run["status"], "exit_code": run["exit_code"], "reason": run["reason"]}
