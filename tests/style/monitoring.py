#!/usr/bin/env python3
"""What docs/monitoring asks Prometheus for are metrics that there are, and its rules say what they should, as far as promtool is here. Prints TAP."""
import glob
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, 'docs/monitoring')
points = []


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def point(name, problems):
    points.append(not problems)
    print(('ok' if not problems else 'not ok'), len(points), '-', name)
    for problem in problems:
        print('#', problem)


def known():
    rows = re.findall(r'^METRIC\("(\w+)", (\w+),', read(os.path.join(ROOT, 'src/proto/metrics/metric.def')), re.M)
    suffixes = {'COUNTER': ('_total',), 'HISTOGRAM': ('_bucket', '_count', '_sum')}
    return {name + suffix for name, kind in rows for suffix in suffixes.get(kind, ('',))}


def strange(text, names):
    return sorted(set(re.findall(r'\bfettle_\w+', text)) - names)


def promtool(*words):
    done = subprocess.run([found.stdout.strip(), *words], cwd=FOLDER, capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else (done.stdout + done.stderr).splitlines()


metrics = known()
files = sorted(glob.glob(os.path.join(FOLDER, '*')))
point('monitoring/files-name-metrics-that-there-are', [f'{os.path.basename(path)}: {name}' for path in files for name in strange(read(path), metrics)]
      if metrics and len(files) == 4 else [f'{len(metrics)} metrics, files {files}'])
point('monitoring/a-metric-that-is-not-there-is-found', [] if strange('rate(fettle_guest_cpu_seconds[1m])', metrics) else ['none was'])
dashboard = json.loads(read(os.path.join(FOLDER, 'dashboard.json')))
point('monitoring/dashboard-has-queries', [panel['title'] for panel in dashboard['panels'] if not all(one['expr'] for one in panel['targets'])]
      if len(dashboard['panels']) > 8 else ['too few panels'])
lines = read(os.path.join(FOLDER, 'prometheus.yml')).splitlines()
point('monitoring/prometheus-yml-is-short', [] if 3 < len(lines) <= 6 else [f'it has {len(lines)} lines'])
found = subprocess.run([os.path.join(ROOT, 'scripts/promtool')], capture_output=True, text=True, check=False)
if found.returncode == 0:
    point('monitoring/rules', promtool('check', 'config', 'prometheus.yml') + promtool('check', 'rules', 'alerts.yml') +
          promtool('test', 'rules', 'alerts-test.yml'))
else:
    points.append(True)
    print('ok', len(points), '- monitoring/rules # SKIP', found.stderr.strip())
print(f'1..{len(points)}')
sys.exit(0 if all(points) else 1)
