/** The client configuration: contexts, each with endpoints, nodes and credentials (base64 of PEM). */

import { isObject } from '../../../document/is-object.ts'
import { UsageError } from '../failure.ts'
import { readTextIfThere } from '../read-text.ts'

/** One cluster as a client sees it. */
export interface Context {
  endpoints: string[]
  nodes: string[]
  ca?: string | undefined
  crt?: string | undefined
  key?: string | undefined
  cluster?: string | undefined
  auth?: { basic?: { username: string; password: string }; siderov1?: { identity: string } } | undefined
}

/** The file's content. */
export interface Talosconfig {
  context: string
  contexts: Record<string, Context>
}

/** Parses a client configuration; `name` is how errors call it. */
export async function parseTalosconfig(text: string, name = 'talosconfig'): Promise<Talosconfig> {
  const root = (await yaml(text, name)) ?? {}
  if (!isObject(root)) throw new UsageError(`${name} is not a client configuration: the top is not a map`)
  const contexts: Record<string, Context> = {}
  if (root.contexts !== undefined && root.contexts !== null && !isObject(root.contexts)) {
    throw new UsageError(`${name} is not a client configuration: "contexts" is not a map`)
  }
  for (const [key, value] of Object.entries(root.contexts ?? {})) contexts[key] = context(value ?? {}, `${name}: contexts.${key}`)
  return { context: string(root.context, `${name}: context`) ?? '', contexts }
}

/** Every command starts here, so the fast parser is used; the thorough one only for error messages. */
async function yaml(text: string, name: string): Promise<unknown> {
  try {
    return Bun.YAML.parse(text)
  } catch (error) {
    const { parseDocument } = await import('yaml')
    const [first] = parseDocument(text).errors
    throw new UsageError(`${name} is not YAML: ${(first ?? (error as Error)).message.split('\n')[0]}`)
  }
}

/** The first of the files that exists, parsed; nothing when none does. */
export async function readTalosconfig(paths: readonly string[]): Promise<{ path: string; config: Talosconfig } | undefined> {
  for (const path of paths) {
    const text = await readTextIfThere(path)
    if (text !== undefined) return { path, config: await parseTalosconfig(text, `"${path}"`) }
  }
  return undefined
}

function context(value: unknown, where: string): Context {
  if (!isObject(value)) throw new UsageError(`${where} is not a map`)
  const target = string(value.target, `${where}.target`)
  const endpoints = texts(value.endpoints, `${where}.endpoints`)
  return {
    endpoints: endpoints.length === 0 && target ? [target] : endpoints,
    nodes: texts(value.nodes, `${where}.nodes`),
    ca: string(value.ca, `${where}.ca`),
    crt: string(value.crt, `${where}.crt`),
    key: string(value.key, `${where}.key`),
    cluster: string(value.cluster, `${where}.cluster`),
    auth: isObject(value.auth) ? (value.auth as Context['auth']) : undefined,
  }
}

function string(value: unknown, where: string): string | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'string') throw new UsageError(`${where} is not a string`)
  return value
}

function texts(value: unknown, where: string): string[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value) || !value.every((item) => typeof item === 'string')) throw new UsageError(`${where} is not a list of strings`)
  return value
}
