/**
 * What the .proto files say, parsed when first asked for: a service brings its own file and those it imports, no more.
 * Names are full names (`machine.MachineService`), files are named after their package or hold several.
 */
import protobuf from 'protobufjs'
import { protos } from './protos.ts'

/** One method of a service. */
export interface MethodShape {
  /** `/machine.MachineService/Hostname` */
  readonly path: string
  readonly request: protobuf.Type
  readonly reply: protobuf.Type
  readonly clientStreams: boolean
  readonly serverStreams: boolean
}

const root = new protobuf.Root()
const loaded = new Set<string>()
let filesByPackage: Map<string, string[]> | undefined

/** The message with this full name. Throws when no .proto file has it: a mistake of the caller. */
export function messageType(name: string): protobuf.Type {
  loadPackageOf(name)
  return root.lookupType(name)
}

/** The method with this path, with or without the leading slash. */
export function methodShape(path: string): MethodShape {
  const [serviceName = '', name = ''] = path.replace(/^\//, '').split('/')
  loadPackageOf(serviceName)
  const service = root.lookupService(serviceName)
  const method = service.methods[name]
  if (!method) throw new Error(`no method "${name}" in service "${serviceName}"`)
  method.resolve()
  return {
    path: `/${serviceName}/${name}`,
    request: method.resolvedRequestType!,
    reply: method.resolvedResponseType!,
    clientStreams: method.requestStream ?? false,
    serverStreams: method.responseStream ?? false,
  }
}

/** The names of a service's methods. */
export function methodsOf(serviceName: string): string[] {
  loadPackageOf(serviceName)
  return Object.keys(root.lookupService(serviceName).methods)
}

function loadPackageOf(name: string): void {
  filesByPackage ??= indexPackages()
  const packageName = name.split('.').slice(0, firstCapital(name)).join('.')
  let fresh = false
  for (const file of filesByPackage.get(packageName) ?? []) fresh = load(file) || fresh
  if (fresh) root.resolveAll()
}

function firstCapital(name: string): number {
  const at = name.split('.').findIndex((part) => /^[A-Z]/.test(part))
  return at < 0 ? name.split('.').length : at
}

function load(file: string): boolean {
  if (loaded.has(file)) return false
  loaded.add(file)
  const common = protobuf.common.get(file)
  if (common) {
    root.addJSON(common.nested ?? {})
    return true
  }
  const text = protos[file]
  if (text === undefined) throw new Error(`no file "${file}" among the .proto files: run "bun run proto"`)
  const { imports = [] } = protobuf.parse(text, root)
  for (const imported of imports) load(imported)
  return true
}

function indexPackages(): Map<string, string[]> {
  const index = new Map<string, string[]>()
  for (const file of ['any', 'duration', 'empty', 'struct', 'timestamp']) add('google.protobuf', `google/protobuf/${file}.proto`)
  for (const [file, text] of Object.entries(protos)) add(/^package\s+([\w.]+)\s*;/m.exec(text)?.[1] ?? '', file)
  return index

  function add(packageName: string, file: string): void {
    index.set(packageName, [...(index.get(packageName) ?? []), file])
  }
}
