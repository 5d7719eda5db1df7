/**
 * Matches patterns in which `*` stands for any characters and `?` for one. All pattern positions reachable by the text so far are
 * tracked at once, so the time is at most the product of both lengths.
 */
export function matchesWildcard(pattern: string, text: string): boolean {
  const parts = pattern.replaceAll(/\*+/g, '*').split('')
  let places = new Uint8Array(parts.length + 1)
  let next = new Uint8Array(parts.length + 1)
  const enter = (into: Uint8Array, place: number) => {
    into[place] = 1
    if (parts[place] === '*') into[place + 1] = 1 // no two stars stand side by side
  }
  enter(places, 0)
  for (const unit of text.split('')) {
    next.fill(0)
    for (let place = 0; place < parts.length; place++) {
      if (places[place] === 0) continue
      const part = parts[place]
      if (part === '*') enter(next, place)
      else if (part === unit || part === '?') enter(next, place + 1)
    }
    ;[places, next] = [next, places]
  }
  return places[parts.length] === 1
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
