"""REST of a lab as its clients have it: HTTPS, with the cluster's authority, and a user's name and password."""
import base64
import functools
import http.client
import itertools
import json
import os
import ssl

PATIENCE_S = 70
ADDRESSES = itertools.cycle(f'127.1.{i // 250}.{i % 250 + 1}' for i in range(2500))  # wrong passwords of one are counted


def basic(user):
    """The headers of "NAME:PASSWORD"; "": none."""
    return {'Authorization': 'Basic ' + base64.b64encode(user.encode()).decode()} if user else {}


class Rest:
    def __init__(self, lab, node='node1'):
        self.lab, self.node, self.user, self.source = lab, node, None, None  # each request comes from another address

    @functools.cached_property
    def port(self):
        return self.daemon()['port']  # the same as long as nobody takes it from a daemon that is down

    def daemon(self):
        known = next(one for one in self.lab.status()['nodes'] if one['name'] == self.node)
        return next(one for one in known['daemons'] if one['name'] == 'rapid')

    def context(self, authority=None):
        return ssl.create_default_context(cafile=authority or os.path.join(self.lab.root(self.node), 'etc', 'ca.crt'))

    def line(self, context=None):
        return http.client.HTTPSConnection('127.0.0.1', self.port, timeout=PATIENCE_S, context=context or self.context(),
                                           source_address=(self.source or next(ADDRESSES), 0))

    def ask(self, method, path, body=None, user=None, headers=()):
        """(status, headers, body) of one request; `user`: "NAME:PASSWORD", in place of the usual one; "": none."""
        user = self.user if user is None else user
        all_headers = {**basic(user), **({'Content-Type': 'application/json'} if body is not None else {}), **dict(headers)}
        line = self.line()
        try:
            line.request(method, path, body=None if body is None else json.dumps(body), headers=all_headers)
            answer = line.getresponse()
            text = answer.read().decode()
            is_json = answer.getheader('Content-Type', '').startswith('application/json')
            return answer.status, dict(answer.getheaders()), json.loads(text) if is_json else text
        except ConnectionRefusedError:
            del self.port
            raise
        finally:
            line.close()

    def get(self, path, user=None):
        """What a good request is answered."""
        status, _, body = self.ask('GET', path, user=user)
        assert status == 200, (path, status, body)
        return body

    def refused(self, method, path, user=None, body=None):
        """(status, explanation)."""
        status, _, answer = self.ask(method, path, body, user)
        assert answer['code'] == status, answer
        return status, answer['explain']
