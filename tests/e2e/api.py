"""A front end of the API as its clients have it: stock ones as processes, and plain requests for what they are too slow for."""
import http.client
import json
import os
import ssl
import urllib.error
import urllib.request

from e2e import fettlelib

PATIENCE_S = 60
HUNG_UP = (OSError, http.client.HTTPException)  # by who dies, or has heard enough; also if nobody listens there just now


class Front:
    def __init__(self, lab, node, port, password):
        self.lab, self.node, self.port, self.password = lab, node, port, password
        self.project = None
        self.context = None  # of TLS, in place of the next
        self.base = f'http://127.0.0.1:{port}'
        self.authority = None  # of what it shows, with TLS

    def client(self, *words, code=0, stdin=None):
        """`openstack`, `cinder` or `glance`, unmodified; its standard output, or with a code its standard error."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith('OS_')}
        if words[0] == 'openstack':
            environment.update(OS_CLIENT_CONFIG_FILE=os.path.join(self.lab.directory, 'clouds.yaml'), OS_CLOUD='fettle')
        else:
            environment.update(OS_AUTH_URL=f'{self.base}/identity/v3', OS_USERNAME='admin', OS_PASSWORD=self.password, OS_PROJECT_NAME='admin',
                               OS_USER_DOMAIN_ID='default', OS_PROJECT_DOMAIN_ID='default', OS_VOLUME_API_VERSION='3.70')
        done = fettlelib.run_command(words, PATIENCE_S, env=environment, **({'stdin': stdin} if stdin else {}))
        assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done.stderr if code else done.stdout

    def openstack(self, *words):
        """Its answer as JSON."""
        return json.loads(self.client('openstack', *words, '-f', 'json'))

    def ask(self, method, path, body=None, token=None, headers=()):
        """Status, headers and body (as JSON where it is) of one request."""
        request = urllib.request.Request(self.base + path, method=method, data=None if body is None else json.dumps(body).encode(),
                                         headers={'Content-Type': 'application/json', **({'X-Auth-Token': token} if token else {}), **dict(headers)})
        try:
            context = self.context or (ssl.create_default_context(cafile=self.authority) if self.authority else None)
            with urllib.request.urlopen(request, timeout=PATIENCE_S, context=context) as answer:
                status, got, text = answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            status, got, text = error.code, error.headers, error.read()
        return status, got, json.loads(text) if text[:1] in (b'{', b'[') else text

    def login(self, password=None):
        """What POST /v3/auth/tokens answers: status, token, body."""
        user = {'name': 'admin', 'domain': {'id': 'default'}, 'password': password or self.password}
        body = {'auth': {'identity': {'methods': ['password'], 'password': {'user': user}},
                         'scope': {'project': {'name': 'admin', 'domain': {'id': 'default'}}}}}
        status, headers, answer = self.ask('POST', '/identity/v3/auth/tokens', body)
        return status, headers.get('X-Subject-Token'), answer

    def can_log_in(self):
        """False also while it is started again."""
        try:
            return self.login()[0] == 201
        except HUNG_UP:
            return False


def init(lab, node='node1', port=None):
    port = port or fettlelib.free_port()
    made = lab.json('api', 'init', '--node', node, '--listen', str(port))
    return Front(lab, node, port, made['password'])
