"""The official Python SDK as a client of `agent mcp serve`, in both eras: mcp_client.py PROGRAM WORKSPACE"""
import asyncio
import sys

from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def use(client):
    tools = [tool.name for tool in (await client.list_tools()).tools]
    assert tools == ["run", "continue"], tools
    result = await client.call_tool("run", {"task": "look around"})
    assert not result.is_error and "scripted demo" in result.content[0].text, result
    sessions = (await client.list_resources()).resources
    assert (await client.read_resource(sessions[0].uri)).contents, sessions
    await client.list_prompts()


async def main(program, workspace):
    parameters = StdioServerParameters(command=program, args=["-C", workspace, "mcp", "serve", "-m", "demo"])
    async with Client(stdio_client(parameters)) as client:
        await use(client)
        assert client.protocol_version == "2026-07-28", client.protocol_version
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        await use(session)
    print("passed: the Python SDK as a client of agent mcp serve, in both eras")


asyncio.run(main(*sys.argv[1:]))
