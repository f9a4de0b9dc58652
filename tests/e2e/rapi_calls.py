#!/usr/bin/python3
"""Ganeti's own client of its remote API, from Debian's package, unmodified: a line of JSON for each call comes in, [name, arguments, keywords],
and one goes out: {"result"} or {"code", "error"}. Until the end of the input. The first line that goes out are the names of all calls."""
import inspect
import json
import sys

from ganeti.rapi import client


def main():
    port, cafile, user, password = sys.argv[1:]
    config = client.GenericCurlConfig(cafile=cafile or None, verify_hostname=False, timeout=120)
    if not cafile:
        def config(curl, _):  # pylint: disable=function-redefined
            curl.setopt(curl.SSL_VERIFYPEER, 0)
            curl.setopt(curl.SSL_VERIFYHOST, 0)
    api = client.GanetiRapiClient('127.0.0.1', port=int(port), username=user, password=password, curl_config_fn=config)
    print(json.dumps([name for name, _ in inspect.getmembers(api, inspect.ismethod) if name[0] != '_']), flush=True)
    for line in sys.stdin:
        name, args, more = json.loads(line)
        try:
            said = {'result': getattr(api, name)(*args, **more)}
        except client.GanetiApiError as error:
            said = {'code': error.code, 'error': str(error)}
        print(json.dumps(said), flush=True)


main()
