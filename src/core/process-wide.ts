/**
 * One object for the whole process, made when first asked for. Two versions of the library may be installed, or one twice:
 * what must be common to them is kept on `globalThis` under a `Symbol.for`.
 *
 * @param name ends in a version, which changes with the shape of the object.
 */
export function processWide<T extends object>(name: string, make: () => T): T {
  const shared = globalThis as unknown as Record<symbol, T | undefined>;
  const key = Symbol.for(`limitkeeper.${name}`);
  const existing = shared[key];
  if (existing !== undefined) return existing;
  const made = make();
  Object.defineProperty(shared, key, { value: made, configurable: true });
  return made;
}
