"""Reports: one self-contained HTML page for a model, a comparison, a benchmark or a monitor.

`reliablenet.report.monitor.monitor_page` is imported by its own name: a decision log needs the extra ``serve``.
"""

from reliablenet.report.benchmark import benchmark_page
from reliablenet.report.comparison import comparison_page
from reliablenet.report.explained import fold_importance
from reliablenet.report.model import model_page
from reliablenet.report.page import write_page

__all__ = ["benchmark_page", "comparison_page", "fold_importance", "model_page", "write_page"]
