/** What to try, ready to be pasted into another terminal. */
export function commands(base: string): string {
  const json = "-H 'content-type: application/json'";
  return `
An API, 120 requests a minute without a token. The loop goes past that:
  curl -i ${base}/api/hello
  for i in $(seq 125); do curl -s -o /dev/null -w '%{http_code} ' ${base}/api/hello; done; echo

A login. After five wrong passwords the right one ("open sesame") has to wait as well:
  curl -i ${json} -d '{"email":"demo@example.com","password":"wrong"}' ${base}/login

Plans: 5, 20 and 100 reports a minute, and as many as you like:
  curl -i -H 'authorization: Bearer demo-free' ${base}/api/report
  curl -i -H 'authorization: Bearer demo-pro' ${base}/api/report
  curl -i -H 'authorization: Bearer demo-enterprise' ${base}/api/report
  curl -i -H 'authorization: Bearer demo-unlimited' ${base}/api/report

An "AI" with 50,000 units a day: the longest answer is reserved, the real cost is settled:
  curl -i -H 'authorization: Bearer demo-pro' ${json} -d '{"prompt":"Why is the sky blue?"}' ${base}/api/ask
`;
}
