// The other end of child.mjs.
const [url, argument] = process.argv.slice(2);
const { default: work } = await import(url);
const result = await work(JSON.parse(argument));
process.send(result, () => process.exit(0));
