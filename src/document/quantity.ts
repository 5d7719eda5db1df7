/** Parses sizes. */

const sizes: Record<string, number> = {
  '': 1,
  b: 1,
  ...Object.fromEntries(
    ['k', 'm', 'g', 't', 'p'].flatMap((letter, power) => [
      [letter, 1000 ** (power + 1)],
      [`${letter}b`, 1000 ** (power + 1)],
      [`${letter}i`, 1024 ** (power + 1)],
      [`${letter}ib`, 1024 ** (power + 1)],
    ]),
  ),
}

/** Bytes of a size such as "10GiB", "1.5 TB" or "4096"; undefined when it is malformed. */
export function parseByteSize(size: string): number | undefined {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)\s*([A-Za-z]{0,3})$/.exec(size.trim()) ?? []
  const bytes = sizes[unit.toLowerCase()]
  return amount && bytes ? Math.round(Number(amount) * bytes) : undefined
}
