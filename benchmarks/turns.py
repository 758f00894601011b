"""Turns per second."""
from __future__ import annotations

import argparse
import asyncio
import time

from benchmarks.society import make_society, own_database


def main() -> None:
    ap = argparse.ArgumentParser()
    ap.add_argument("--agents", type=int, default=1000)
    ap.add_argument("--slots", type=int, default=10)
    ap.add_argument("--messages", type=int, default=0)
    ap.add_argument("--cohort", type=int, default=None)
    ap.add_argument("--turns", type=int, default=3000)
    ap.add_argument("--profile", default="")
    args = ap.parse_args()
    with own_database() as kind:
        began = time.perf_counter()
        society = make_society(n_agents=args.agents, cohort_size=args.cohort, n_messages=args.messages)
        print("filled in", round(time.perf_counter() - began, 1))
        from engine import build, runs
        from engine.core.settings import configuration
        from engine.ports.llm import LlmAnswer, Move, Usage, Written
        from engine.runs.progress import Silence
        from engine.models import Turn, Run
        from django.db.models import Max, Min, Sum

        class Instant:
            free = True
            def __init__(self, *a, **k): pass
            def upper_estimate(self, request): return 0
            async def complete(self, request):
                text = f"{request.agent} in turn {request.turn} says {request.turn * 7919} things about timber, staves and resin that dry in the kiln of number {request.turn * 31}."
                return LlmAnswer(decision=Written(move=Move.CONTINUE, text=text), usage=Usage(input_tokens=900, output_tokens=90, cost_nano_usd=0), model="benchmark", prompt_version="1", finish_reason="end_turn")
        vars(build)["OfflineLlm"] = Instant
        config = configuration({"concurrent_turns": args.slots, "thread_messages": 100, "active_thread_threshold": 1, "daily_posts": 0}, policy="open", llm="offline", chat="local", clock="real", seed=1, time_zone="UTC", max_turns=args.turns, until_idle=True, latency_seconds=0.0)
        t0 = time.perf_counter(); c0 = time.process_time()
        begun = runs.begin(society.simulation, config, who="bench")
        def go(): return runs.drive(begun, Silence())
        if args.profile:
            import cProfile, pstats
            pr = cProfile.Profile(); pr.enable()
        driven = go()
        if args.profile:
            pr.disable(); pstats.Stats(pr).sort_stats(args.profile).print_stats(45)
        wall = time.perf_counter() - t0; cpu = time.process_time() - c0
        run = Run.objects.get(pk=driven.run_id)
        f = Turn.objects.filter(run=run).aggregate(a=Min("selected_at"), b=Max("finished_at"), c=Sum("llm_calls"), m=Sum("committed"))
        n = Turn.objects.filter(run=run).count()
        secs = (f["b"] - f["a"]).total_seconds()
        print(kind, vars(args), driven.ending.reason, n, "turns", f["c"], "calls", f["m"], "committed", f"{n/secs:.0f} turns/s; whole {wall:.2f}s cpu {cpu:.2f}s first turn after {wall-secs:.2f}")


if __name__ == "__main__":
    main()
