"""The paper, rerun: methods, profiles, runner, results, tables and figures."""

from reliablenet.bench.methods import METHODS, Method, Point, Training, register
from reliablenet.bench.profiles import PROFILES, Plan, Profile, load_profile
from reliablenet.bench.runner import Job, count_runs, pending_jobs, run_jobs
from reliablenet.bench.store import Store

__all__ = [
    "METHODS",
    "PROFILES",
    "Job",
    "Method",
    "Plan",
    "Point",
    "Profile",
    "Store",
    "Training",
    "count_runs",
    "load_profile",
    "pending_jobs",
    "register",
    "run_jobs",
]
