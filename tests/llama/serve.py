#!/usr/bin/env python3
"""Serves a GGUF file with llama.cpp's server on a free port of loopback: serve.py FILE WINDOW

Prints the address when it is ready, and ends when its stdin does.
"""

import sys

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_ctx = int(sys.argv[2])
params.n_parallel = 1
params.hostnames, params.port = ["127.0.0.1"], 0
params.n_gpu_layers = 0
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.use_jinja, params.warmup, params.fit_params, params.ctx_shift = True, False, False, False
params.verbosity = 0
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
