#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# pytest on a free-threaded Python, without the extras: free_threading.sh [python3.14t [pytest's arguments]]
set -eu
cd "$(dirname "$0")/.."
python=${1:-python3.14t}
[ $# -eq 0 ] || shift
environment=build/free-threaded
"$python" -m venv --clear "$environment"
. "$environment/bin/activate"
pip install --quiet --only-binary :all: . 'pytest>=8' 'hypothesis>=6.100' 'mpmath>=1.3' 'ml_dtypes>=0.4'
python -W error -c 'import sys, fastpe; sys.exit("the global interpreter lock is on" if sys._is_gil_enabled() else 0)'
exec python -m pytest tests "$@"
