/** A machine that answers every method with messages in which every field has a value: made from the schema alone. */
import type { Methods } from '../../../src/rpc/messages.ts'
import { type FieldShape, messageType, methodShape } from '../../../src/rpc/schema.ts'
import type { Method } from '../../../src/rpc/server/method.ts'
import { node } from './peer.ts'

const paths = [
  ...(await Bun.file(`${import.meta.dir}/../../../src/rpc/schema.txt`).text()).matchAll(/^\/(machine|time|storage)\.[^:]+/gm),
].map(([path]) => path.slice(1) as keyof Methods)

/** The first of each list and map is enough; messages that hold themselves end there. */
function sample(type: string, above: readonly string[] = []): Record<string, unknown> {
  if (type === 'common.Metadata') return { hostname: node }
  if (type === 'google.protobuf.Any') return { type_url: 'talos/runtime/machine.RestartEvent', value: new Uint8Array() }
  if (type === 'google.protobuf.Timestamp' || type === 'google.protobuf.Duration') return { seconds: 1, nanos: 0 }
  const fields = messageType(type).fields.filter(({ type: of, isMessage }) => !isMessage || !above.includes(of))
  return Object.fromEntries(fields.map((field) => [field.name, values(field, [...above, type])]))
}

function values(field: FieldShape, above: readonly string[]): unknown {
  const one = field.isMessage ? sample(field.type, above) : scalar(field)
  if (field.mapKey) return { key: one }
  // Fields that mark a message as an error are not part of a successful reply.
  if (field.name === 'error' || field.name === 'errors') return field.repeated ? [] : ''
  return field.repeated ? [one] : one
}

function scalar({ type, name, asText }: FieldShape): unknown {
  if (type === 'string') return name
  if (type === 'bool') return true
  if (type === 'bytes') return Buffer.from(name)
  return asText ? '1' : 1
}

/** The methods; `also` is put behind the good message of unary replies, such as the failure of another node. */
export function sampleMethods(also: readonly object[] = [], good = true): Method[] {
  return paths.flatMap((path) => {
    const { reply, clientStreams, serverStreams } = methodShape(path)
    if (clientStreams) return []
    const message = sample(reply.name)
    if (!serverStreams) {
      const handle = () => ('messages' in message ? { messages: [...(good ? (message.messages as object[]) : []), ...also] } : message)
      return [{ path, access: 'anyone', kind: 'unary', handle } as Method]
    }
    const handle = async function* () {
      yield message
    }
    return [{ path, access: 'anyone', kind: 'server', handle } as Method]
  })
}
