import * as v from 'valibot'

/** A host with or without a port, or `*` for all: files and folders are named after it. */
export const isRegistryName = (name: string): boolean =>
  name.length <= 261 &&
  !name.includes('..') &&
  /^(?:\*|[A-Za-z0-9_][A-Za-z0-9_.-]*(?::\d{1,5})?|\[[0-9A-Fa-f:]+\](?::\d{1,5})?)$/.test(name)

/** A map by names of registries. */
export const byRegistry = <T extends v.GenericSchema>(value: T) =>
  v.record(v.pipe(v.string(), v.check(isRegistryName, 'not the name of a registry, like "docker.io" or "registry.test:5000"')), value)
