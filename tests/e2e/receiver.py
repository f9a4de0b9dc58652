"""A receiver of webhooks: ADDRESS PORT FOLDER. What it took is a line of FOLDER/taken: id, type, signature, content type, body, path.
FOLDER/mode says how it behaves."""
import http.server
import json
import os
import socket
import socketserver
import sys
import threading
import time

ADDRESS, PORT, FOLDER = sys.argv[1], int(sys.argv[2]), sys.argv[3]
LOCK = threading.Lock()
HANG_S = 120  # a client that is still there then has no bound of its own


def mode():
    with open(os.path.join(FOLDER, 'mode'), encoding='utf-8') as file:
        return file.read().strip()


def note(name, line):
    with LOCK, open(os.path.join(FOLDER, name), 'a', encoding='utf-8') as file:
        file.write(json.dumps(line) + '\n')


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass

    def do_GET(self):  # whoever follows a redirect comes here
        note('followed', self.path)
        self.send_error(404)

    def do_POST(self):
        body, how = self.rfile.read(int(self.headers['Content-Length'])), mode()
        event = json.loads(body)
        self.close_connection = True
        note('asked', [time.monotonic(), how, event['id']])
        getattr(self, 'do_' + how, self.do_status)(how, event, body.decode())

    def do_status(self, how, event, body):
        if how == 'ok':
            note('taken', [event['id'], event['type'], self.headers['Webhook-Signature'], self.headers['Content-Type'], body, self.path])
        self.send_response(204 if how == 'ok' else int(how))
        if how == '301':
            self.send_header('Location', f'http://{ADDRESS}:{PORT}/elsewhere')
        self.end_headers()

    def do_silent(self, *_):
        time.sleep(HANG_S)

    def do_slow(self, *_):
        """A head without an end, letter by letter."""
        for _ in range(10 * HANG_S):
            self.wfile.write(b'x')
            time.sleep(0.1)

    def do_endless(self, *_):
        self.wfile.write(b'HTTP/1.1 500 Oh\r\n' + b''.join(b'X-%d: %s\r\n' % (i, b'y' * 1000) for i in range(10000)))

    def do_body(self, *_):
        """It is refused, and told why without an end."""
        self.wfile.write(b'HTTP/1.1 503 No\r\nContent-Type: text/plain\r\n\r\n')
        for _ in range(100000):
            self.wfile.write(b'z' * 65536)

    def do_garbage(self, *_):
        self.wfile.write(b'\x00\x01\xff\x1b[2J no HTTP\r\n\r\n')

    def do_closes(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    address_family = socket.AF_INET6 if ':' in ADDRESS else socket.AF_INET

    def handle_error(self, *_):  # pylint: disable=arguments-differ
        pass


Server((ADDRESS, PORT), Receiver).serve_forever()
