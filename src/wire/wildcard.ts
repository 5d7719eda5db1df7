/**
 * Matches patterns in which `*` stands for any characters and `?` for one. With a separator neither of them matches it, and
 * `**` matches anything. All pattern positions reachable by the text so far are tracked at once, so the time is at most the
 * product of both lengths.
 */
export function matchesWildcard(pattern: string, text: string, separator = ''): boolean {
  const parts = partsOf(pattern, separator)
  let places = new Uint8Array(parts.length + 1)
  let next = new Uint8Array(parts.length + 1)
  const isStar = (place: number) => parts[place] === '*' || parts[place] === '**'
  const enter = (into: Uint8Array, place: number) => {
    into[place] = 1
    if (isStar(place)) into[place + 1] = 1 // no two stars stand side by side
  }
  enter(places, 0)
  for (const unit of text.split('')) {
    next.fill(0)
    for (let place = 0; place < parts.length; place++) {
      if (places[place] === 0) continue
      const part = parts[place]
      if (part === '**' || (part === '*' && unit !== separator)) enter(next, place)
      else if (part === unit || (part === '?' && unit !== separator)) enter(next, place + 1)
    }
    ;[places, next] = [next, places]
  }
  return places[parts.length] === 1
}

/** The elements of a pattern; adjacent stars are merged into the most general one. */
function partsOf(pattern: string, separator: string): string[] {
  const parts: string[] = []
  for (const part of pattern.match(separator ? /\*\*|[\s\S]/g : /[\s\S]/g) ?? []) {
    const last = parts.at(-1)
    if (part === '**' && last === '*') parts[parts.length - 1] = part
    else if (!(part.startsWith('*') && last?.startsWith('*'))) parts.push(part)
  }
  return parts
}

/** Matches patterns in which only `*` is special: it stands for any characters. */
export function matchesStars(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return pattern === text
  if (!text.startsWith(first)) return false
  let at = first.length
  for (const part of rest) {
    const found = text.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return at + last.length <= text.length && text.endsWith(last)
}
