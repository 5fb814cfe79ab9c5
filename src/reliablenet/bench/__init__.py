"""The paper, rerun: protocol, profiles, store and runner."""

from reliablenet.bench.profiles import PROFILES, Plan, Profile, load_profile
from reliablenet.bench.runner import Job, count_runs, pending_jobs, run_jobs
from reliablenet.bench.store import Store

__all__ = [
    "PROFILES",
    "Job",
    "Plan",
    "Profile",
    "Store",
    "count_runs",
    "load_profile",
    "pending_jobs",
    "run_jobs",
]
