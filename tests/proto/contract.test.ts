import { expect, test } from 'bun:test'
import { Glob } from 'bun'
import protobuf from 'protobufjs'

const folder = `${import.meta.dir}/../../proto`

async function rows(file: string): Promise<string[][]> {
  const text = await Bun.file(`${import.meta.dir}/contract/${file}`).text()
  return text
    .split('\n')
    .filter((line) => line !== '')
    .slice(1)
    .map((line) => line.split('\t'))
}

async function load(): Promise<protobuf.Root> {
  const root = new protobuf.Root()
  for (const name of ['any', 'duration', 'empty', 'struct', 'timestamp'])
    root.addJSON(protobuf.common.get(`google/protobuf/${name}.proto`)!.nested!)
  // It extends the options of methods, which belong to the compiler's own descriptors.
  for await (const file of new Glob('**/*.proto').scan(folder))
    if (file !== 'ichor/options.proto') protobuf.parse(await Bun.file(`${folder}/${file}`).text(), root)
  root.resolveAll()
  return root
}

const root = await load()
const fields = [...(await rows('api-messages.tsv')), ...(await rows('resource-spec-messages.tsv'))]
const values = [...(await rows('api-enums.tsv')), ...(await rows('resource-spec-enums.tsv'))]
const methods = await rows('api-services.tsv')

/** Everything the tables' packages hold must be in the tables; these packages are described elsewhere. */
const elsewhere =
  /^(ichor|google\.api|google\.protobuf|grpc|sidero|containerd|etcdserverpb|mvccpb|authpb|events|opentelemetry|runtime|ttrpc|types)\b/

function typeOf(field: protobuf.Field): string {
  const one = field.resolvedType ? nameOf(field.resolvedType) : field.type
  return field instanceof protobuf.MapField ? `map<${field.keyType},${one}>` : one
}

function labelOf(field: protobuf.Field): string {
  if (field instanceof protobuf.MapField) return 'map'
  if (field.repeated) return 'repeated'
  if (field.options?.proto3_optional) return 'optional'
  return field.partOf ? `oneof:${field.partOf.name}` : 'single'
}

function nameOf(object: protobuf.ReflectionObject): string {
  return object.fullName.slice(1)
}

function underscored(field: protobuf.Field): string {
  return field.name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function everything<T extends protobuf.ReflectionObject>(kind: new (...args: never[]) => T, space: protobuf.NamespaceBase = root): T[] {
  return space.nestedArray.flatMap((object) => [
    ...(object instanceof kind ? [object] : []),
    ...(object instanceof protobuf.Namespace ? everything(kind, object) : []),
  ])
}

test('every field of every message has the number, type and label of the tables', () => {
  const described = new Map<string, Map<string, string>>()
  for (const [message = '', field = '', number, label, type] of fields) {
    const known = described.get(message) ?? new Map<string, string>()
    described.set(message, known)
    if (label !== '-' && type !== 'reserved' && type !== '(empty)') known.set(field, `${number} ${label} ${type}`)
  }
  const written = new Map(
    everything(protobuf.Type)
      .filter((type) => !elsewhere.test(nameOf(type)))
      .map((type) => [
        nameOf(type),
        new Map(type.fieldsArray.map((field) => [wireName(type, field), `${field.id} ${labelOf(field)} ${typeOf(field)}`])),
      ]),
  )
  for (const [name, expected] of described)
    if (!name.startsWith('google.protobuf.')) expect({ name, fields: plain(written.get(name)) }).toEqual({ name, fields: plain(expected) })
  expect([...written.keys()].filter((name) => !described.has(name))).toEqual([])
})

const fieldAt = new Map(fields.map((row) => [`${row[0]} ${row[2]}`, row]))

/** The name in the file: the parser keeps only the camelCase one where they differ. */
function wireName(type: protobuf.Type, field: protobuf.Field): string {
  const row = fieldAt.get(`${nameOf(type)} ${field.id}`)
  const name = row?.[1] ?? underscored(field)
  return (row?.[5] || name) === field.name ? name : underscored(field)
}

function plain(map: Map<string, string> | undefined): Record<string, string> {
  return Object.fromEntries([...(map ?? [])].sort(([a], [b]) => (a < b ? -1 : 1)))
}

test('every value of every enum has the number of the tables', () => {
  const described: Record<string, Record<string, number>> = {}
  for (const [name = '', value = '', number] of values) {
    if (name.startsWith('google.')) continue
    described[name] = { ...described[name], [value]: Number(number) }
  }
  const written = Object.fromEntries(
    everything(protobuf.Enum)
      .filter((type) => !elsewhere.test(nameOf(type)))
      .map((type) => [nameOf(type), { ...type.values }]),
  )
  expect(written).toEqual(described)
})

test('every service has the methods of the tables, streaming as they say', () => {
  const described = methods.map(([space, service, method, clientStreams, serverStreams, request, reply]) =>
    [`${space}.${service}/${method}`, clientStreams === '1', serverStreams === '1', request, reply].join(' '),
  )
  const written = everything(protobuf.Service)
    .filter((service) => !elsewhere.test(nameOf(service)))
    .flatMap((service) =>
      service.methodsArray.map((method) => {
        method.resolve()
        const path = `${nameOf(service)}/${method.name}`
        const types = [nameOf(method.resolvedRequestType!), nameOf(method.resolvedResponseType!)]
        return [path, method.requestStream ?? false, method.responseStream ?? false, ...types].join(' ')
      }),
    )
  expect(written.sort()).toEqual(described.sort())
})
