/** The page of the machine API: what the .proto files declare of the methods that a node serves, and who may call them. */
import protobuf from 'protobufjs'
import { parseProtos, typesOf } from '../../proto/generate.ts'
import type { Access } from '../../src/rpc/server/method.ts'
import { servedMethods } from '../../tests/os/served-methods.ts'
import { anchorOf } from '../site/links.ts'
import { cell, generated, table } from './text.ts'

const introduction = `${generated} The machine API is gRPC over mutual TLS on port 50000 of every node. The roles of a caller are the organizations of its
client certificate. A call with the metadata \`nodes\` is forwarded to these nodes, and its reply has a message of each of them, named in
\`metadata.hostname\`.

While a machine waits for its first configuration, it has no clients yet: every caller has the role \`os:reader\`, and the methods
marked *in maintenance* are open as well.`

/** All services, methods and messages. */
export async function apiPage(): Promise<string> {
  const root = await parseProtos({ keepCase: true, alternateCommentMode: true })
  const access = new Map<string, Access>(servedMethods('metal').map(({ path, access }) => [path, access]))
  const services = [...new Set([...access.keys()].map((path) => path.slice(0, path.indexOf('/'))))]
    .sort()
    .map((name) => root.lookupService(name))
  const served = services.flatMap((service) => service.methodsArray.filter(({ name }) => access.has(`${nameOf(service)}/${name}`)))
  const messages = reachable(served.map(typesOf).flatMap(({ request, reply }) => [request, reply]))
  return [
    '# Machine API',
    '',
    introduction,
    '',
    ...services.map((service) => `- [${nameOf(service)}](#${anchorOf(nameOf(service))}): ${service.comment}`),
    '',
    ...services.flatMap((service) => serviceSection(service, access)),
    '## Messages',
    '',
    ...messages.flatMap(messageSection),
  ].join('\n')
}

function serviceSection(service: protobuf.Service, access: ReadonlyMap<string, Access>): string[] {
  const rows = service.methodsArray.flatMap((method) => {
    const roles = access.get(`${nameOf(service)}/${method.name}`)
    if (!roles) return []
    const { request, reply } = typesOf(method)
    const sent = `${method.requestStream ? 'stream of ' : ''}${link(request)}`
    const answered = `${method.responseStream ? 'stream of ' : ''}${link(reply)}`
    return [[`\`${method.name}\``, cell(method.comment ?? ''), `${sent} → ${answered}`, rolesText(roles)]]
  })
  return [`## ${nameOf(service)}`, '', service.comment ?? '', '', ...table(['method', 'what it does', 'messages', 'roles'], rows)]
}

function rolesText(access: Access): string {
  if (access === 'anyone') return 'anyone'
  const names = 'roles' in access ? access.roles : access
  const open = 'roles' in access && access.inMaintenance.length > 0 ? ', *in maintenance*' : ''
  return `${names.map((role) => `\`${role}\``).join(', ')}${open}`
}

/** Messages and enums with everything their fields are of, by name. */
function reachable(types: readonly protobuf.Type[]): (protobuf.Type | protobuf.Enum)[] {
  const found = new Set<protobuf.Type | protobuf.Enum>()
  const visit = (type: protobuf.Type | protobuf.Enum): void => {
    if (found.has(type)) return
    found.add(type)
    if (!(type instanceof protobuf.Type)) return
    for (const field of type.fieldsArray) {
      const { resolvedType } = field.resolve()
      if (resolvedType) visit(resolvedType)
    }
  }
  for (const type of types) visit(type)
  return [...found].filter((type) => !nameOf(type).startsWith('google.')).sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
}

function messageSection(type: protobuf.Type | protobuf.Enum): string[] {
  const head = [`### ${nameOf(type)}`, '', ...(type.comment ? [type.comment, ''] : [])]
  if (type instanceof protobuf.Enum)
    return [...head, ...described(['value', 'number'], Object.entries(type.values), (name) => type.comments[name] ?? '')]
  if (type.fieldsArray.length === 0) return [...head, 'No fields.', '']
  const rows = type.fieldsArray.map((field): [string, string] => [field.name, typeText(field)])
  return [...head, ...described(['field', 'type'], rows, (name) => type.fields[name]?.comment ?? '')]
}

/** A table of names with a column for comments where there are any. */
function described(head: [string, string], rows: [string, unknown][], comment: (name: string) => string): string[] {
  if (rows.every(([name]) => comment(name) === ''))
    return table(
      head,
      rows.map(([name, value]) => [`\`${name}\``, `${value}`]),
    )
  return table(
    [...head, ''],
    rows.map(([name, value]) => [`\`${name}\``, `${value}`, cell(comment(name))]),
  )
}

function typeText(field: protobuf.Field): string {
  const one = field.resolvedType ? link(field.resolvedType) : field.type
  if (field instanceof protobuf.MapField) return `map from ${field.keyType} to ${one}`
  return field.repeated ? `list of ${one}` : one
}

/** A link to a message, named without its package; the types of the protocol buffers' own library are known by their names alone. */
function link(type: protobuf.ReflectionObject): string {
  const name = nameOf(type)
  return name.startsWith('google.')
    ? `\`${name.slice(name.lastIndexOf('.') + 1)}\``
    : `[${name.replace(/^[a-z\d.]+\./, '')}](#${anchorOf(name)})`
}

const nameOf = (object: protobuf.ReflectionObject): string => object.fullName.replace(/^\./, '')
