"""`make demo-rest`: the demo's repair once more, watched from outside alone: events and metrics by curl, and a webhook's deliveries, as any program
has them. As a program it is the webhook's receiver: it prints what it gets, a line each."""
import contextlib
import hashlib
import hmac
import http.server
import json
import os
import re
import subprocess
import sys
import threading
import time

from fettlelib import address, run_command, wait_until

VICTIM, PATIENCE_S = 'node3', 60
STATEMENT = 'demo: the power was cut'
WATCHER, OPERATOR = ('watcher', 'reads'), ('operator', 'writes')  # users of REST, with their passwords
ON_RECORD = re.compile(r'^fettle_cluster_replicas\{state="in-sync"\} (\d+)$', re.MULTILINE)
ENDS = ('job.success', 'job.error', 'job.canceled')
OF_GUESTS = re.compile(r'^fettle_replica_in_sync\{.*\} (\d+)$', re.MULTILINE)
KINDS, HOOK, RECEIVER, PORT = 'job,decision', 'pager', 2, 8080  # the receiver is on that node


class Outside:
    """What curl can reach: REST of the master, and monitoring of each node."""

    def __init__(self, lab):
        self.lab = lab
        self.master = self.find('rapid')['node1']
        self.monitors = self.find('mond')

    def find(self, name):
        """Where that daemon of each node is reached."""
        return {node['name']: daemon['port'] for node in self.lab.status()['nodes'] for daemon in node['daemons'] if daemon['name'] == name}

    @staticmethod
    def curl(*words):
        """What it prints; None: nobody answers there."""
        done = run_command(['curl', '-sS', '--fail-with-body', *words], PATIENCE_S)
        if done.returncode == 22:
            raise AssertionError(f'curl {" ".join(words)}: {done.stdout}')
        return None if done.returncode else done.stdout

    def address(self, path, user):
        authority = os.path.join(self.lab.root('node1'), 'etc', 'ca.crt')
        return '--cacert', authority, '-u', ':'.join(user), f'https://localhost:{self.master}{path}'

    def rest(self, path, *words, user=WATCHER):
        said = self.curl(*self.address(path, user), *words)
        if said is None:
            raise AssertionError(f'REST does not answer: {path}')
        return said

    def rows(self, kind, fields):
        """Of all that is on record of a kind: what was said of its fields."""
        said = json.loads(self.rest(f'/fettle/v1/query/{kind}?fields={",".join(fields)}'))
        return [{name: cell[1] for name, cell in zip(fields, row)} for row in said['data']]

    def on_record(self):
        found = ON_RECORD.search(self.rest('/metrics'))
        return int(found[1]) if found else 0

    def of_guests(self):
        """The same as the nodes that run the guests see it."""
        told = (self.curl(f'http://127.0.0.1:{port}/metrics') for port in self.monitors.values())
        return sum(int(number) for text in told if text for number in OF_GUESTS.findall(text))


class Events:
    """curl at the stream of events: {(event, kind/key)}. Prints decisions, and how jobs end."""

    def __init__(self, outside, timeline):
        words = ['curl', '-sSN', *outside.address(f'/fettle/v1/events?kinds={KINDS}', WATCHER)]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)  # pylint: disable=consider-using-with
        self.timeline, self.told, self.begun = timeline, set(), False
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        event = ''
        for line in self.process.stdout:
            name, _, value = line.rstrip('\n').partition(': ')
            self.begun = self.begun or name == 'id'
            event = value if name == 'event' else event
            if name == 'data':
                self.take(event, json.loads(value))

    def take(self, event, data):
        told = event, f'{data["kind"]}/{data["key"]}'
        if told not in self.told and (event in ENDS or event.startswith('decision.')):
            summary = data['summary']
            text = summary if isinstance(summary, str) else ', '.join(summary)  # of a job, one for each opcode
            self.timeline.say(data.get('subject_name', 'job'), f'{event}:'.ljust(15) + text)
            self.told.add(told)

    def __enter__(self):
        wait_until('events are followed', lambda: self.begun, PATIENCE_S)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.thread.join()
        self.process.wait()
        self.process.stdout.close()


class Receiver:
    """What a webhook delivers to: a process on one of the nodes, and what it has got. Prints that, too."""

    def __init__(self, lab, secret, timeline):
        self.timeline, self.got = timeline, set()
        words = lab.exec_words(f'node{RECEIVER}', 'python3', os.path.abspath(__file__), address(RECEIVER), str(PORT))
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # pylint: disable=consider-using-with
        self.process.stdin.write(secret + '\n')
        self.process.stdin.flush()
        self.process.stdout.readline()  # it listens
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        for one in map(json.loads, self.process.stdout):
            self.timeline.say('webhook:', f'{one["type"]}: {one["subject"]}, {"signed" if one["signed"] else "NOT SIGNED"}')
            if one['signed']:
                self.got.add('/'.join(one['id'].split('/')[:2]))  # of a decision, whatever has become of it

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()  # which ends it
        self.thread.join()
        self.process.wait()
        self.process.stdout.close()


class Watch:
    """Prints how the metrics change, and keeps them."""

    def __init__(self, outside, timeline):
        self.outside, self.timeline = outside, timeline
        self.metrics = {'on record': [], 'of guests': []}

    def look(self):
        for name, value in (('on record', self.outside.on_record()), ('of guests', self.outside.of_guests())):
            known = self.metrics[name]
            if known and known[-1] != value:
                self.timeline.say('metric:', f'replicas in sync, {name}: {known[-1]} -> {value}')
            known.append(value)

    def until(self, what, condition):
        def looked():
            self.look()
            return condition()
        wait_until(what, looked, PATIENCE_S, step=0.2)

    def all_in_sync(self, count):
        self.until('all replicas are in sync', lambda: all(values[-1] == count for values in self.metrics.values()))


def repaired(outside, names):
    """Whether the repair of each of these has ended well."""
    states = {row['instance']: row['state'] for row in outside.rows('repair', ['instance', 'state'])}
    return all(states.get(name) == 'success' for name in names)


def happened(lab):
    """Decisions and ended jobs that are on record, as a webhook calls them."""
    jobs = lab.query('job', ['id', 'status'])
    ended = {f'job/{row["id"]}' for row in jobs if f'job.{row["status"]}' in ENDS}
    return ended | {f'decision/{row["uuid"]}' for row in lab.query('decision', ['uuid'])}


def cut(lab, outside, timeline):
    """The power, and then the operator's word, by REST too."""
    print(f'\nThe power of {VICTIM} is cut.')
    lab.lab('power', VICTIM, 'off')
    timeline.zero = time.monotonic()
    outside.rest(f'/2/nodes/{VICTIM}/modify', '-H', 'Content-Type: application/json', '-d', json.dumps({'offline': True, 'statement': STATEMENT}),
                 user=OPERATOR)
    timeline.say('operator:', f'curl -u operator …/2/nodes/{VICTIM}/modify -d \'{{"offline": true, "statement": "{STATEMENT}"}}\'')


def follow(lab, watch, names, count):
    """Until everything is repaired."""
    cut(lab, watch.outside, watch.timeline)
    watch.until('everything is repaired', lambda: repaired(watch.outside, names))
    watch.all_in_sync(count)


def compare(new, told):
    """Rows of what was told each way, when all of it was, or when it is surely not."""
    with contextlib.suppress(TimeoutError):
        wait_until('all that has happened is told', lambda: all(new <= found() for _, found in told), PATIENCE_S)
    return [(what, len(new & found()), len(new), len(new - found())) for what, found in told]


def set_up(lab, timeline, create):
    lab.cli('tag', 'add', 'cluster', 'ganeti:watcher:autorepair:failover')
    create(lab, timeline)
    for (name, password), rights in ((WATCHER, []), (OPERATOR, ['--write'])):
        lab.cli('rapi', 'user', 'add', name, *rights, typed=password + '\n')
    host = address(RECEIVER)
    lab.cli('cluster', 'modify', '--webhook-allow', host)
    url = f'http://[{host}]:{PORT}/' if ':' in host else f'http://{host}:{PORT}/'
    return lab.json('webhook', 'add', HOOK, '--url', url, '--events', 'job.*,repair.*,decision.*')['secret']


def play(lab, timeline, show_table, create, places):
    print('Three nodes, four instances with mirrored disks; a policy tag on the cluster allows failover.')
    secret = set_up(lab, timeline, create)
    outside = Outside(lab)
    names = [name for name, primary, secondary in places if VICTIM in (primary, secondary)]
    print(f"""
From here on everything that is shown comes from outside:
  curl -N -u watcher https://localhost:…/fettle/v1/events?kinds={KINDS}
  curl -u watcher https://localhost:…/metrics (on record), curl http://NODE:1815/metrics (of guests)
  fettle webhook add {HOOK} --url http://… --events 'job.*,repair.*,decision.*'""")
    with Receiver(lab, secret, timeline) as receiver, Events(outside, timeline) as events:
        watch = Watch(outside, timeline)
        lab.cli('webhook', 'test', HOOK)
        watch.all_in_sync(len(places))
        watch.metrics = {name: values[-1:] for name, values in watch.metrics.items()}
        timeline.say('metric:', f'replicas in sync: {len(places)}')
        before = happened(lab)
        follow(lab, watch, names, len(places))
        told = compare(happened(lab) - before, (('events, by curl', lambda: {key for _, key in events.told}), ('deliveries', lambda: receiver.got)))
    print()
    show_table(('replicas that are in sync', 'before', 'during', 'after'),
               [(name, values[0], min(values), values[-1]) for name, values in watch.metrics.items()])
    print()
    show_table(('what is told', 'how many', 'on record', 'missed'), told)
    lab.cli('webhook', 'remove', HOOK)
    return sum(row[-1] for row in told)


# --- the receiver ---

def is_ours(secret, header, body):
    words = dict(word.split('=', 1) for word in header.split(',') if '=' in word)
    right = hmac.new(secret.encode(), words.get('t', '').encode() + b'.' + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(right, words.get('v1', ''))


def receive(host, port):
    secret = sys.stdin.readline().strip()

    class Handler(http.server.BaseHTTPRequestHandler):
        """Takes everything."""

        def do_POST(self):  # pylint: disable=invalid-name
            body = self.rfile.read(int(self.headers['Content-Length']))
            said = json.loads(body)
            signed = is_ours(secret, self.headers.get('Webhook-Signature', ''), body)
            print(json.dumps({'id': said['id'], 'type': said['type'], 'subject': said.get('subject', ''), 'signed': signed}), flush=True)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    class Server(http.server.HTTPServer):
        address_family = 10 if ':' in host else 2

    server = Server((host, port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print('it listens', flush=True)
    sys.stdin.read()  # until whoever has started it has heard enough


if __name__ == '__main__':
    receive(sys.argv[1], int(sys.argv[2]))
