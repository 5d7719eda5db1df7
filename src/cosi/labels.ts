import type { Metadata, ResourceType } from './resource.ts'

/** Whether two sets of labels are equal. */
export function same(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  if (a === b) return true
  let count = 0
  for (const key in a) {
    if (a[key] !== b[key]) return false
    count++
  }
  for (const _ in b) count--
  return count === 0
}

/** The annotations of a writer, plus those of the type. */
export function annotated(type: ResourceType<never> | ResourceType, given: Metadata['annotations']): Metadata['annotations'] {
  return type.annotations ? { ...given, ...type.annotations } : given
}
