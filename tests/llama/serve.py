#!/usr/bin/env python3
"""Serves a GGUF file with llama.cpp's servers on free ports of loopback: serve.py FILE WINDOW COUNT

Prints their addresses in one line when they are ready, and ends when its stdin does.
"""

import sys

import xllamacpp


def serve(file, window):
    params = xllamacpp.CommonParams()
    params.model.path = file
    params.n_ctx = window
    params.n_parallel = 1
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.use_jinja, params.warmup, params.fit_params, params.ctx_shift = True, False, False, False
    params.verbosity = 0
    return xllamacpp.Server(params)


servers = [serve(sys.argv[1], int(sys.argv[2])) for _ in range(int(sys.argv[3]))]
print(*(server.listening_address for server in servers), flush=True)
sys.stdin.read()
