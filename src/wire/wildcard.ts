/**
 * Patterns in which `*` stands for any characters and `?` for one. With a separator neither of them matches it, and `**`
 * matches anything. All places in the pattern that the text so far can have reached are kept at once, so the time is the
 * product of both lengths at most, whatever the pattern.
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

/** What a pattern is made of; of stars in a row the most general one stands for all. */
function partsOf(pattern: string, separator: string): string[] {
  const parts: string[] = []
  for (const part of pattern.match(separator ? /\*\*|[\s\S]/g : /[\s\S]/g) ?? []) {
    const last = parts.at(-1)
    if (part === '**' && last === '*') parts[parts.length - 1] = part
    else if (!(part.startsWith('*') && last?.startsWith('*'))) parts.push(part)
  }
  return parts
}

/** Patterns in which only `*` is special: it stands for any characters. */
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
