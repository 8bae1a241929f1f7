// The client of the section `express`: a process that asks what it is told to, over so many connections that stay open.
// In: { path, requests, from }. Out: how many answers had which status.
import http from 'node:http';

const port = Number(process.argv[2]);
const CONNECTIONS = 16;
const SUBJECTS = 10_000;
const agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS });

const get = (path, subject) =>
  new Promise((resolve, reject) => {
    const headers = { 'x-forwarded-for': subject };
    const request = http.get({ port, host: '127.0.0.1', path, agent, headers }, response => {
      response.resume();
      response.once('end', () => resolve(response));
    });
    request.once('error', reject);
  });

const subjectOf = i => `81.2.${(i >> 8) & 255}.${i & 255}`;

process.on('message', async ({ path, requests, from, subject }) => {
  const statuses = {};
  let headers = {};
  let next = 0;
  const lane = async () => {
    while (next < requests) {
      const i = next++;
      const response = await get(path, subject ?? subjectOf((from + i) % SUBJECTS));
      headers = response.headers;
      statuses[response.statusCode] = (statuses[response.statusCode] ?? 0) + 1;
    }
  };
  // One subject asks one after another.
  await Promise.all(Array.from({ length: subject === undefined ? CONNECTIONS : 1 }, lane));
  process.send({ statuses, headers });
});
