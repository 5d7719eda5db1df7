import { hashOf } from '../build/cache.ts'

/** A UUID that follows from a text. */
export function uuidOf(text: string): string {
  const digest = hashOf(text)
  return [digest.slice(0, 8), digest.slice(8, 12), `4${digest.slice(13, 16)}`, `8${digest.slice(17, 20)}`, digest.slice(20, 32)].join('-')
}
