import { createServer, request as send } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import express from 'express';
import express4 from 'express4';
import request from 'supertest';
import { NO_ADDRESS } from '../../src/core/subject.js';
import { clientIp } from '../../src/express/client-ip.js';

describe('the address in one spelling', () => {
  test.each([
    ['203.0.113.7', '203.0.113.7'],
    ['203.0.113.7:4711', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['::ffff:cb00:7107', '203.0.113.7'],
    ['0:0:0:0:0:FFFF:CB00:7107', '203.0.113.7'],
    ['[::ffff:203.0.113.7]:80', '203.0.113.7'],
    ['2001:db8:0:aabb:1:2:3:4', '2001:db8:0:aa00::/56'],
    ['[2001:DB8:0:aabb::1]:443', '2001:db8:0:aa00::/56'],
    ['fe80::1%eth0', 'fe80::1/128'],
    [' 203.0.113.7 ', '203.0.113.7'],
  ])('%j is %j', (ip, expected) => {
    expect(clientIp({ ip })).toBe(expected);
  });

  test.each([
    [32, '2001:db8::/32'],
    [48, '2001:db8:1::/48'],
    [64, '2001:db8:1:aabb::/64'],
    [128, '2001:db8:1:aabb:1:2:3:4/128'],
  ])('a prefix of %d bits: %j', (prefix, expected) => {
    expect(clientIp({ ip: '2001:db8:1:aabb:1:2:3:4' }, prefix)).toBe(expected);
  });

  test.each([31, 129, 56.5, NaN, Infinity, '56', null])('a prefix of %p is refused', prefix => {
    expect(() => clientIp({ ip: '::1' }, prefix as number)).toThrow(
      expect.objectContaining({
        name: 'RangeError',
        code: 'ERR_LIMITKEEPER_OPTION_RANGE',
        option: 'ipv6Prefix',
      }),
    );
  });
});

describe('no address is one separate subject, never the text "undefined"', () => {
  test.each<[string, object]>([
    ['a socket that is gone', { socket: { remoteAddress: undefined } }],
    ['no socket', { socket: null }],
    ['nothing at all', {}],
  ])('%s', (_case, req) => {
    expect(clientIp(req)).toBe(NO_ADDRESS);
  });

  test.each(['', ' ', 'unknown', 'undefined', '_hidden', '1.2.3.4.5', '256.1.1.1', '1.2.3', ':', '/56'])(
    'an address that is none (%j) is nobody of his own',
    ip => {
      expect(clientIp({ ip, socket: { remoteAddress: '10.0.0.1' } })).toBe(NO_ADDRESS);
    },
  );

  test('whoever invents such texts does not get a quota for each', () => {
    const seen = new Set(Array.from({ length: 1000 }, (_, i) => clientIp({ ip: `nobody-${i}` })));
    expect([...seen]).toEqual([NO_ADDRESS]);
  });

  test('a value that is no text at all does not crash', () => {
    expect(clientIp({ ip: 42 } as never)).toBe(NO_ADDRESS);
  });
});

describe('a bare http server', () => {
  const answer = (req: IncomingMessage): Promise<string> => Promise.resolve(clientIp(req));

  test('over TCP it is the address of the socket, whatever the headers say', async () => {
    const server = createServer((req, res) => void answer(req).then(ip => res.end(ip)));
    const { text } = await request(server).get('/').set('X-Forwarded-For', '198.51.100.1');
    expect(text).toBe('127.0.0.1');
  });

  test('an IPv4 client of a dual-stack socket is the same client', async () => {
    const server = createServer((req, res) => res.end(`${clientIp(req)} ${req.socket.remoteAddress}`));
    await new Promise<void>(done => server.listen(0, '::ffff:127.0.0.1', done));
    const { port } = server.address() as AddressInfo;
    const { text } = await request(`http://127.0.0.1:${port}`).get('/');
    server.close();
    expect(text).toBe('127.0.0.1 ::ffff:127.0.0.1');
  });

  test('over a unix socket there is none', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'limitkeeper-'));
    const socketPath = join(folder, 's');
    const server = createServer((req, res) => res.end(clientIp(req)));
    await new Promise<void>(done => server.listen(socketPath, done));
    const body = await new Promise<string>((resolve, reject) => {
      send({ socketPath, path: '/' }, res => {
        let text = '';
        res.on('data', chunk => (text += String(chunk)));
        res.on('end', () => resolve(text));
      })
        .on('error', reject)
        .end();
    });
    await new Promise(done => server.close(done));
    rmSync(folder, { recursive: true });
    expect(body).toBe(NO_ADDRESS);
  });
});

describe.each([
  ['Express 5', express],
  ['Express 4', express4 as unknown as typeof express],
])('%s', (_name, framework) => {
  const seen = async (trust: unknown, forwarded?: string): Promise<string> => {
    const app = framework();
    app.set('trust proxy', trust);
    app.get('/', (req, res) => void res.send(clientIp(req)));
    const call = request(app).get('/');
    return (await (forwarded === undefined ? call : call.set('X-Forwarded-For', forwarded))).text;
  };

  test.each<[trust: unknown, forwarded: string | undefined, expected: string]>([
    [false, undefined, '127.0.0.1'],
    [false, '198.51.100.1', '127.0.0.1'],
    [1, '198.51.100.1', '198.51.100.1'],
    // P03: what a client invents stands left of what the proxy adds.
    [1, '6.6.6.6, 198.51.100.1', '198.51.100.1'],
    ['loopback', '6.6.6.6, 198.51.100.1', '198.51.100.1'],
    [1, '2001:db8::1', '2001:db8::/56'],
    [1, '198.51.100.1:4711', '198.51.100.1'],
    [1, '::ffff:c633:6401', '198.51.100.1'],
    // S9: a load balancer of IPv6 alone, behind NAT64.
    [1, '64:ff9b::c633:6401', '198.51.100.1'],
    [1, 'unknown', NO_ADDRESS],
    [1, '1.2.3.4.5', NO_ADDRESS],
    // Express finds no address in these, and takes the one of the socket.
    [1, '', '127.0.0.1'],
    [1, ',', '127.0.0.1'],
  ])('trust proxy %j, X-Forwarded-For %j: %j', async (trust, forwarded, expected) => {
    expect(await seen(trust, forwarded)).toBe(expected);
  });
});
