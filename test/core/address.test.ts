import { BlockList } from 'node:net';
import fc from 'fast-check';
import { canonicalAddress, DEFAULT_IPV6_PREFIX } from '../../src/core/address.js';

describe('IPv4', () => {
  test.each([
    ['203.0.113.7', '203.0.113.7'],
    ['0.0.0.0', '0.0.0.0'],
    ['255.255.255.255', '255.255.255.255'],
    ['203.0.113.7:0', '203.0.113.7'],
    ['203.0.113.7:65535', '203.0.113.7'],
    ['[203.0.113.7]', '203.0.113.7'],
    ['[203.0.113.7]:8080', '203.0.113.7'],
  ])('%j is %j', (text, expected) => {
    expect(canonicalAddress(text)).toBe(expected);
  });

  test('no prefix cuts it', () => {
    expect(canonicalAddress('203.0.113.7', 32)).toBe('203.0.113.7');
  });
});

describe('IPv4-mapped IPv6 is IPv4 in every spelling', () => {
  test.each([
    '::ffff:203.0.113.7',
    '::FFFF:203.0.113.7',
    '::ffff:cb00:7107',
    '::FFFF:CB00:7107',
    '0:0:0:0:0:ffff:203.0.113.7',
    '0:0:0:0:0:ffff:cb00:7107',
    '0000:0000:0000:0000:0000:ffff:cb00:7107',
    '0000:0000:0000:0000:0000:ffff:203.0.113.7',
    '::0:ffff:203.0.113.7',
    '0::ffff:203.0.113.7',
    '0:0::ffff:cb00:7107',
    '::ffff:203.0.113.7%eth0',
    '[::ffff:203.0.113.7]',
    '[::ffff:203.0.113.7]:443',
    '[::ffff:cb00:7107%3]:443',
  ])('%j', text => {
    for (const prefix of [32, 56, 128]) expect(canonicalAddress(text, prefix)).toBe('203.0.113.7');
  });

  test('the hexadecimal groups may be short, or zero', () => {
    expect(canonicalAddress('::ffff:0:1')).toBe('0.0.0.1');
    expect(canonicalAddress('::ffff:0:0')).toBe('0.0.0.0');
    expect(canonicalAddress('::ffff:1:')).toBeUndefined();
  });

  test.each([
    // IPv4-compatible, IPv4-translated, NAT64, and a mark in another place: none of them is mapped.
    ['::203.0.113.7', '::/56'],
    ['::ffff:0:203.0.113.7', '::/56'],
    ['64:ff9b::203.0.113.7', '64:ff9b::/56'],
    ['::ffff:0:0:203.0.113.7', '0:0:0:ff00::/56'],
    ['1::ffff:203.0.113.7', '1::/56'],
    ['::fffe:203.0.113.7', '::/56'],
  ])('%j is not mapped: %j', (text, expected) => {
    expect(canonicalAddress(text)).toBe(expected);
  });
});

describe('IPv6 is cut to its prefix', () => {
  test('56 bits unless another is named', () => {
    expect(DEFAULT_IPV6_PREFIX).toBe(56);
    expect(canonicalAddress('2001:db8:0:aabb:1:2:3:4')).toBe('2001:db8:0:aa00::/56');
  });

  test.each([
    [32, '2001:db8::/32'],
    [33, '2001:db8:8000::/33'],
    [47, '2001:db8:fffe::/47'],
    [48, '2001:db8:ffff::/48'],
    [56, '2001:db8:ffff:ff00::/56'],
    [60, '2001:db8:ffff:fff0::/60'],
    [64, '2001:db8:ffff:ffff::/64'],
    [65, '2001:db8:ffff:ffff:8000::/65'],
    [112, '2001:db8:ffff:ffff:ffff:ffff:ffff:0/112'],
    [127, '2001:db8:ffff:ffff:ffff:ffff:ffff:fffe/127'],
    [128, '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff/128'],
  ])('to %d bits: %j', (prefix, expected) => {
    expect(canonicalAddress('2001:db8:ffff:ffff:ffff:ffff:ffff:ffff', prefix)).toBe(expected);
  });

  test('P10 a client that rotates the addresses of his /64, or of his /56, stays one', () => {
    const rotating = Array.from({ length: 10_000 }, (_, i) =>
      canonicalAddress(`2001:db8:0:12${(i % 256).toString(16).padStart(2, '0')}::${i.toString(16)}`),
    );
    expect(new Set(rotating)).toEqual(new Set(['2001:db8:0:1200::/56']));
  });

  test('the neighbour in the next /56 is another', () => {
    expect(canonicalAddress('2001:db8:0:12ff::1')).not.toBe(canonicalAddress('2001:db8:0:1300::1'));
  });
});

describe('the spelling is that of RFC 5952', () => {
  test.each([
    ['2001:DB8::1', '2001:db8::1/128', 'lower case'],
    ['2001:0db8:0000:0000:0000:0000:0000:0001', '2001:db8::1/128', 'no leading zeros'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1/128', 'the first of two equal runs'],
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1/128', 'the longest run'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1/128', 'a single zero group stays'],
    ['2001:db8::1:1:1:1:1', '2001:db8:0:1:1:1:1:1/128', 'even where it came as ::'],
    ['0:0:0:0:0:0:0:0', '::/128', 'nothing but zeros'],
    ['0:0:0:0:0:0:0:1', '::1/128', 'zeros in front'],
    ['1:0:0:0:0:0:0:0', '1::/128', 'zeros at the end'],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0/128', 'one zero at the end'],
    ['::2:3:4:5:6:7:8', '0:2:3:4:5:6:7:8/128', 'one zero in front'],
    ['1:2:3:4:5:6:1.2.3.4', '1:2:3:4:5:6:102:304/128', 'dotted groups become hexadecimal'],
  ])('%j is %j: %s', (text, expected) => {
    expect(canonicalAddress(text, 128)).toBe(expected);
  });
});

describe('zone and port are dropped', () => {
  test.each([
    'fe80::1',
    'fe80::1%eth0',
    'fe80::1%25',
    'fe80::1%en-0.1',
    '[fe80::1]',
    '[fe80::1]:80',
    '[fe80::1%eth0]',
    '[fe80::1%eth0]:65535',
    'FE80:0::0:1%eth0',
  ])('%j', text => {
    expect(canonicalAddress(text, 128)).toBe('fe80::1/128');
  });
});

describe('what is no address is left alone', () => {
  test.each([
    '',
    'alice',
    'alice@example.org',
    'undefined',
    'unknown',
    'cafe',
    '42',
    '1.2',
    '1.2.3',
    '1.2.3.4.5',
    '256.1.1.1',
    '01.2.3.4',
    '1.2.3.4 ',
    ' 1.2.3.4',
    '1.2.3.4\n',
    '1.2.3.4:',
    '1.2.3.4:123456',
    '1.2.3.4:http',
    '1.2.3.4/24',
    '[1.2.3.4',
    '1.2.3.4]',
    ':',
    ':::',
    '1::2::3',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '12345::',
    'g::1',
    '::1%',
    '::1]',
    '[::1',
    '[::1]:',
    '[::1]:123456',
    '[::1]x',
    '::ffff:1.2.3.256',
    '::ffff:1.2.3',
    '::1/128',
    '2001:db8::/56',
    '１.２.３.４',
    '[no address]',
    '[]',
  ])('%j', text => {
    expect(canonicalAddress(text)).toBeUndefined();
  });

  test.each(['1', ':', '1:', '1.', '[', '::ffff:', 'f', '%'])('nor is %j a hundred thousand times', unit => {
    expect(canonicalAddress(unit.repeat(100_000))).toBeUndefined();
  });
});

// An independent reading of addresses: sixteen bytes as one number, and WHATWG URLs, which write them as RFC 5952 asks.
describe('any address, however it is written', () => {
  const ALL = 2n ** 128n - 1n;
  const bits = fc.oneof(
    fc.bigInt({ min: 0n, max: ALL }),
    // Mostly zeros, so that there is something to compress.
    fc
      .array(fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, fc.integer({ min: 0, max: 0xffff })), {
        minLength: 8,
        maxLength: 8,
      })
      .map(groups => groups.reduce((sum, group) => (sum << 16n) | BigInt(group), 0n)),
    fc.nat(0xffff_ffff).map(v4 => (0xffffn << 32n) | BigInt(v4)),
  );
  const prefixes = fc.integer({ min: 32, max: 128 });

  const groupsOf = (value: bigint): number[] =>
    Array.from({ length: 8 }, (_, i) => Number((value >> BigInt(16 * (7 - i))) & 0xffffn));
  const dottedOf = (value: bigint): string =>
    [24n, 16n, 8n, 0n].map(shift => String((value >> shift) & 255n)).join('.');
  const isMapped = (value: bigint): boolean => value >> 32n === 0xffffn;

  /** One of the many ways to write an address. */
  const spelling = fc.record({
    upper: fc.boolean(),
    padded: fc.boolean(),
    dotted: fc.boolean(),
    // Which run of zeros, if any, becomes `::`, and where it begins and ends.
    gap: fc.option(fc.tuple(fc.nat(7), fc.integer({ min: 1, max: 8 }))),
    zone: fc.constantFrom('', '%eth0', '%1'),
    brackets: fc.constantFrom('', '[]', '[]:443'),
  });

  function write(
    value: bigint,
    { upper, padded, dotted, gap, zone, brackets }: typeof spelling extends fc.Arbitrary<infer S> ? S : never,
  ): string {
    const groups = groupsOf(value).map(group => group.toString(16).padStart(padded ? 4 : 1, '0'));
    let text: string;
    const tail = dotted ? [...groups.slice(0, 6), dottedOf(value)] : groups;
    if (gap === null) text = tail.join(':');
    else {
      const [from, length] = gap;
      const end = Math.min(dotted ? 6 : 8, from + length);
      const zeros = groupsOf(value)
        .slice(from, end)
        .every(group => group === 0);
      text =
        zeros && end > from
          ? `${tail.slice(0, from).join(':')}::${tail.slice(end).join(':')}`
          : tail.join(':');
    }
    text = `${upper ? text.toUpperCase() : text}${zone}`;
    return brackets === '' ? text : `[${text}${brackets.slice(1)}`;
  }

  function expected(value: bigint, prefix: number): string {
    if (isMapped(value)) return dottedOf(value);
    const kept = (value >> BigInt(128 - prefix)) << BigInt(128 - prefix);
    const groups = groupsOf(kept).map(group => group.toString(16));
    return `${new URL(`http://[${groups.join(':')}]/`).hostname.slice(1, -1)}/${prefix}`;
  }

  test('becomes the same text', () => {
    fc.assert(
      fc.property(bits, prefixes, spelling, (value, prefix, style) => {
        expect(canonicalAddress(write(value, style), prefix)).toBe(expected(value, prefix));
      }),
      { numRuns: 1000 },
    );
  });

  test('lies in the subnet that its text names, and what shares the subnet shares the text', () => {
    fc.assert(
      fc.property(bits, fc.bigInt({ min: 0n, max: ALL }), prefixes, (value, noise, prefix) => {
        const text = canonicalAddress(write(value, PLAIN), prefix);
        fc.pre(!isMapped(value));
        const [net = '', length] = text?.split('/') ?? [];
        const subnet = new BlockList();
        subnet.addSubnet(net, Number(length), 'ipv6');
        expect(subnet.check(write(value, PLAIN), 'ipv6')).toBe(true);
        for (const other of [value ^ (noise >> BigInt(prefix)), value ^ noise]) {
          if (isMapped(other)) continue;
          const same = canonicalAddress(write(other, PLAIN), prefix) === text;
          expect(same).toBe(subnet.check(write(other, PLAIN), 'ipv6'));
        }
      }),
      { numRuns: 500 },
    );
  });

  const PLAIN = { upper: false, padded: false, dotted: false, gap: null, zone: '', brackets: '' } as const;

  test('and no other text becomes one', () => {
    fc.assert(
      fc.property(
        fc.string({
          unit: fc.constantFrom('0', '1', '2', '25', 'f', 'ffff', ':', ':', '::', '.', '[', ']', '%'),
          maxLength: 50,
        }),
        text => {
          const canonical = canonicalAddress(text);
          if (canonical !== undefined) expect(canonical).toMatch(/^(?:[\d.]+|[\da-f:]+\/56)$/);
        },
      ),
      { numRuns: 2000 },
    );
  });
});
