/** A collector on the loopback that speaks OTLP over HTTP, and reads it by the .proto files with another implementation. */
import type protobuf from 'protobufjs'
import { parseProtos } from '../../../../proto/generate.ts'

/** What it answers. */
export interface Answer {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body?: object
}

/** A request that it got; the message as JSON has it, with text for bytes and long numbers. */
export interface Received {
  readonly path: string
  readonly headers: Headers
  readonly message: Record<string, any>
}

const root = await parseProtos()
const types: Record<string, [request: protobuf.Type, reply: protobuf.Type]> = {
  '/v1/traces': typesOf('trace', 'Trace'),
  '/v1/metrics': typesOf('metrics', 'Metrics'),
  '/v1/logs': typesOf('logs', 'Logs'),
}

function typesOf(space: string, name: string): [protobuf.Type, protobuf.Type] {
  const of = (what: string) => root.lookupType(`opentelemetry.proto.collector.${space}.v1.Export${name}Service${what}`)
  return [of('Request'), of('Response')]
}

/** Answers with these in turn, with the last from then on. */
export function collector(...answers: Answer[]) {
  const got: Received[] = []
  const waiting: (() => void)[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const path = new URL(request.url).pathname
      const json = request.headers.get('content-type') === 'application/json'
      const [type, reply] = types[path] ?? []
      if (!type || !reply) return new Response(undefined, { status: 404 })
      const message = json
        ? ((await request.json()) as Received['message'])
        : type.toObject(type.decode(new Uint8Array(await request.arrayBuffer())), { longs: String, bytes: (bytes: Buffer) => bytes })
      got.push({ path, headers: request.headers, message })
      for (const wake of waiting.splice(0)) wake()
      const { status = 200, headers = {}, body = {} } = (answers.length > 1 ? answers.shift() : answers[0]) ?? {}
      return new Response(json ? JSON.stringify(body) : Buffer.from(reply.encode(reply.fromObject(body)).finish()), { status, headers })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    got,
    close: () => server.stop(true),
    /** The first so many requests. */
    async received(count: number): Promise<Received[]> {
      while (got.length < count) await new Promise<void>((resolve) => waiting.push(resolve))
      return got
    },
  }
}
