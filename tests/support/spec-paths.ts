import { unwrap } from '../../src/document/shape.ts'

/** Every path in the schema of a spec: `a.b[].c{string}.d`. */
export function* specPaths(schema: unknown, path = ''): Generator<string> {
  const inner = unwrap(schema)
  for (const [key, entry] of Object.entries<unknown>(inner.entries ?? {})) {
    const at = path ? `${path}.${key}` : key
    yield at
    yield* specPaths(entry, at)
  }
  if (inner.type === 'array') yield* specPaths(inner.item, `${path}[]`)
  if (inner.type === 'record') yield* specPaths(inner.value, `${path}{}`)
}
