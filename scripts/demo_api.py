"""`make demo-api`: clients of OpenStack, unmodified, and what is left of their requests when a front end or a volume service dies in the middle."""
import http.client
import json
import os
import time

from demo_storage import BACKEND, DOWN_S, PATIENCE_S, Story
from fettlelib import disk_of_its_own, free_port, run_command, standing_still, wait_until

MIB = 1 << 20
HUNG_UP = (OSError, http.client.HTTPException)
NODES = ('node1', 'node2')


class Front:
    """What a client sees: one port, and answers."""

    def __init__(self, port):
        self.port, self.token, self.project = port, '', ''

    def connect(self):
        return http.client.HTTPConnection('127.0.0.1', self.port, timeout=PATIENCE_S)

    def ask(self, method, path, body=None):
        connection = self.connect()
        connection.request(method, path, None if body is None else json.dumps(body), {'Content-Type': 'application/json', 'X-Auth-Token': self.token})
        with connection.getresponse() as answer:
            text = answer.read()
            return answer.status, answer.headers, json.loads(text) if text[:1] == b'{' else {}

    def log_in(self, name, password, project='admin'):
        domain = {'id': 'default'}
        user = {'name': name, 'domain': domain, 'password': password}
        status, headers, body = self.ask('POST', '/identity/v3/auth/tokens', {'auth': {
            'identity': {'methods': ['password'], 'password': {'user': user}}, 'scope': {'project': {'name': project, 'domain': domain}}}})
        if status != 201:
            raise AssertionError(body)
        self.token, self.project = headers['X-Subject-Token'], body['token']['project']['id']

    def new_image(self, name):
        return self.ask('POST', '/image/v2/images', {'name': name, 'disk_format': 'raw', 'container_format': 'bare'})[2]['id']

    def put(self, image, length):
        """A PUT of so many bytes that has begun: to be sent in pieces."""
        connection = self.connect()
        connection.putrequest('PUT', f'/image/v2/images/{image}/file')
        for header in (('X-Auth-Token', self.token), ('Content-Type', 'application/octet-stream'), ('Content-Length', str(length))):
            connection.putheader(*header)
        connection.endheaders()
        return connection


def send(connection, pieces, end=True):
    for piece in pieces:
        connection.send(piece)
    if not end:
        return 0
    with connection.getresponse() as answer:
        return answer.status


class ApiStory(Story):
    kinds = {'volume': 'volumes', 'image': 'images'}

    def __init__(self, lab, timeline):
        super().__init__(lab, timeline)
        self.front, self.password = None, ''

    def stock(self, *words):
        environment = {key: value for key, value in os.environ.items() if not key.startswith('OS_')}
        if words[0] == 'openstack':
            environment.update(OS_CLIENT_CONFIG_FILE=os.path.join(self.lab.directory, 'clouds.yaml'), OS_CLOUD='fettle')
        else: # reads no such file
            environment.update(OS_AUTH_URL=f'http://127.0.0.1:{self.front.port}/identity/v3', OS_USERNAME='admin', OS_PASSWORD=self.password,
                               OS_PROJECT_NAME='admin', OS_USER_DOMAIN_ID='default', OS_PROJECT_DOMAIN_ID='default')
        done = run_command(words, PATIENCE_S, env=environment)
        if done.returncode:
            raise AssertionError(f'{" ".join(words)}: {done.stderr}')
        return done.stdout

    def set_up(self):
        port = free_port()
        password = self.lab.json('api', 'init', '--node', 'node1', '--listen', str(port))['password']
        self.front = Front(port)
        wait_until('the front end answers', lambda: self.answers('/identity/v3'), PATIENCE_S)
        self.front.log_in('admin', password)
        self.password = password
        self.timeline.say('operator:', f'fettle api init --node node1 --listen {port}')

    def answers(self, path):
        try:
            return self.front.ask('GET', path)[0] == 200
        except HUNG_UP:
            return False

    def image_through_a_pipe(self):
        path = os.path.join(self.lab.directory, 'tick.raw')
        with open(path, 'wb') as file:
            file.write(os.urandom(MIB) * 4)
        self.stock('openstack', 'image', 'create', 'tick', '--file', path, '--disk-format', 'raw')
        self.timeline.say('client:', 'openstack image create tick --file tick.raw')
        self.stock('openstack', 'volume', 'create', '--size', '1', '--image', 'tick', 'v1')
        wait_until('v1 is made', lambda: (self.find('volume', 'v1') or {}).get('status') == 'available', PATIENCE_S)
        self.timeline.say('client:', 'openstack volume create --size 1 --image tick v1: it is available')

    def is_taken(self, image, pieces):
        try:
            return send(self.front.put(image, sum(map(len, pieces))), pieces) == 204
        except HUNG_UP: # refused before all of it has come
            return False

    def front_end_dies(self):
        image = self.front.new_image('half')
        connection = self.front.put(image, 32 * MIB)
        send(connection, [b'x' * MIB] * 24, end=False) # more than may be on its way
        folder = os.path.join(self.place, 'images')
        wait_until('half comes', lambda: any(one.name.startswith(image) and one.stat().st_blocks for one in os.scandir(folder)), PATIENCE_S)
        since = time.monotonic()
        self.lab.lab('kill', 'apid@node1')
        self.timeline.say('half', 'its bytes are on their way: the front end is killed')
        wait_until('half is queued again', lambda: self.find('image', 'half')['status'] == 'queued', PATIENCE_S)
        took = time.monotonic() - since
        connection.close()
        wait_until('the front end is back', lambda: self.answers('/identity/v3'), PATIENCE_S)
        self.timeline.say('half', f'is queued: {self.find("image", "half")["why"] or "nothing of it is there"}')
        wait_until('it can be sent again', lambda: self.is_taken(image, [b'x' * MIB] * 32), PATIENCE_S)
        self.timeline.say('half', 'is sent again, and active')
        self.rows.append(['PUT of image half', 'front end killed', 'none: hung up', 'queued, then sent again', f'{took:.1f} s'])

    def member_dies(self):
        volumes = f'/volume/v3/{self.front.project}/volumes'
        with standing_still(self.place):
            status, headers, _ = self.front.ask('POST', volumes, {'volume': {'name': 'big', 'size': 2}})
            request = headers['x-openstack-request-id']
            wait_until('big is in somebody\'s hands', lambda: (self.find('volume', 'big') or {}).get('worker'), PATIENCE_S)
            node = self.find('volume', 'big')['worker'].split('@')[0]
            self.lab.lab('pause', f'volumed@{node}')
        since = time.monotonic()
        self.timeline.say('big', f'was answered with {status}; the volume service of {node} is stopped in the middle of it')
        self.down(node)
        self.refuse_a_member()
        said = self.stock('cinder', 'work-cleanup')
        self.timeline.say('client:', 'cinder work-cleanup\n' + ''.join(f'{" " * 22}{line}\n' for line in said.splitlines()[1:5]).rstrip())
        wait_until('big is settled', lambda: not (self.find('volume', 'big') or {}).get('operation'), PATIENCE_S)
        found = self.find('volume', 'big')
        self.rows.append(['POST of volume big', f'{node} stopped', str(status), found['status'], f'{time.monotonic() - since:.1f} s'])
        self.revived('volume', 'big', node)
        with open(os.path.join(self.lab.root('node1'), 'log', 'api', 'audit.log'), encoding='utf-8') as file:
            line = next(one for one in map(json.loads, file) if one['request_id'] == request)
        self.timeline.say('audit.log', ' '.join((line['method'], line['path'].rpartition('/')[2], str(line['status']), request)))

    def refuse_a_member(self):
        identity = '/identity/v3'
        user = self.front.ask('POST', f'{identity}/users', {'user': {'name': 'ann', 'password': 'ann\'s own'}})[2]['user']['id']
        role = next(one['id'] for one in self.front.ask('GET', f'{identity}/roles')[2]['roles'] if one['name'] == 'member')
        self.front.ask('PUT', f'{identity}/projects/{self.front.project}/users/{user}/roles/{role}')
        self.front.log_in('ann', 'ann\'s own')
        connection = self.front.connect()
        connection.request('POST', f'/volume/v3/{self.front.project}/workers/cleanup', '{}', {
            'Content-Type': 'application/json', 'X-Auth-Token': self.front.token, 'OpenStack-API-Version': 'volume 3.24'})
        with connection.getresponse() as answer:
            status = answer.status
        self.timeline.say('ann:', f'POST workers/cleanup: {status}; it is for administrators')
        if status != 403:
            raise AssertionError(f'a member asked for cleanup and was answered with {status}')
        self.front.log_in('admin', self.password)


def play(lab, timeline, show_table):
    story = ApiStory(lab, timeline)
    print(f'Three nodes; the volume services of two share one directory. One that is silent for {DOWN_S} s counts as down.')
    with disk_of_its_own(story.place, 256):
        lab.cli('cluster', 'modify', '--report-interval', '1', '--service-down-time', str(DOWN_S))
        lab.cli('backend', 'add', BACKEND, '--nodes', ','.join(NODES), '--path', story.place, '--images', 'yes', '--overcommit', '100000')
        wait_until('both serve it', lambda: [story.states().get(f'{node}@{BACKEND}') for node in NODES] == ['up'] * 2, PATIENCE_S)
        timeline.zero = time.monotonic()
        story.set_up()
        print('\nClients of OpenStack, unmodified: an image, and a volume of it.')
        story.image_through_a_pipe()
        print('\nA front end dies in the middle of the bytes of an image.')
        story.front_end_dies()
        print('\nA volume service stands still in the middle of what a client has asked for.')
        story.member_dies()
        story.nothing_left()
        print()
        show_table(('request', 'what broke', 'answer', 'what is left', 'how long', 'bytes left behind'), story.rows)
        for name in ('big', 'v1'):
            lab.cli('volume', 'delete', name)
        for name in ('half', 'tick'):
            lab.cli('image', 'delete', name, '--yes')
        lab.cli('api', 'remove', '--node', 'node1', '--yes')
        lab.cli('backend', 'remove', BACKEND)
    return sum(row[-1] for row in story.rows)
