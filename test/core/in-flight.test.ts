import fc from 'fast-check';
import { Flying, InFlight } from '../../src/core/in-flight.js';

class Item extends Flying {
  readonly id: number;

  constructor(id: number) {
    super();
    this.id = id;
  }
}

const ids = (list: InFlight<Item>): number[] =>
  list
    .list()
    .map(({ id }) => id)
    .sort((a, b) => a - b);

type Step =
  | { readonly type: 'add' }
  | { readonly type: 'remove'; readonly which: number }
  | { readonly type: 'take'; readonly divisor: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ type: fc.constant('add' as const) }),
  fc.record({ type: fc.constant('remove' as const), which: fc.nat(50) }),
  fc.record({ type: fc.constant('take' as const), divisor: fc.integer({ min: 2, max: 4 }) }),
);

test('whatever is added, removed and taken, it holds what a Set would hold', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), steps => {
      const list = new InFlight<Item>();
      const model = new Set<Item>();
      const made: Item[] = [];
      for (const step of steps) {
        if (step.type === 'add') {
          const added = new Item(made.length);
          made.push(added);
          list.add(added);
          model.add(added);
        } else if (step.type === 'remove') {
          const removed = made[step.which];
          if (removed !== undefined) expect(list.remove(removed)).toBe(model.delete(removed));
        } else {
          const taken = list.take(({ id }) => id % step.divisor === 0).map(({ id }) => id);
          const meant = [...model].filter(({ id }) => id % step.divisor === 0);
          expect([...taken].sort((a, b) => a - b)).toEqual(meant.map(({ id }) => id).sort((a, b) => a - b));
          for (const gone of meant) model.delete(gone);
        }
        expect(list.size).toBe(model.size);
        expect(ids(list)).toEqual([...model].map(({ id }) => id).sort((a, b) => a - b));
      }
    }),
  );
});

test('what is listed is a copy: it may be changed while it is walked through', () => {
  const list = new InFlight<Item>();
  const items = [new Item(1), new Item(2), new Item(3)];
  for (const added of items) list.add(added);
  for (const listed of list.list()) list.remove(listed);
  expect(list.size).toBe(0);
});
