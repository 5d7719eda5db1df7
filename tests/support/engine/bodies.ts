/** The bodies that the stand-in engine takes: a key that is not here is refused, so that no misspelt one is silently without effect. */

import * as v from 'valibot'

const text = v.string()
const port = v.pipe(text, v.regex(/^\d{1,5}\/(tcp|udp)$/))
const path = v.pipe(text, v.startsWith('/'))
const readOnly = { ReadOnly: v.optional(v.boolean()) }

export const NetworkBody = v.strictObject({
  Name: text,
  Driver: v.literal('bridge'),
  CheckDuplicate: v.optional(v.boolean()),
  Labels: v.record(text, text),
  IPAM: v.strictObject({
    Driver: v.literal('default'),
    Config: v.array(v.strictObject({ Subnet: text, Gateway: v.pipe(text, v.ipv4()) })),
  }),
  Options: v.record(text, text),
})

const Mount = v.variant('Type', [
  v.strictObject({ Type: v.literal('tmpfs'), Target: path, ...readOnly, TmpfsOptions: v.optional(v.object({})) }),
  v.strictObject({ Type: v.literal('volume'), Source: v.optional(text), Target: path, ...readOnly }),
  v.strictObject({ Type: v.literal('bind'), Source: path, Target: path, ...readOnly, BindOptions: v.optional(v.object({})) }),
])

export const ContainerBody = v.strictObject({
  Image: text,
  Hostname: v.pipe(text, v.maxLength(63)),
  StopSignal: v.optional(v.literal('SIGTERM')),
  Env: v.optional(v.array(v.pipe(text, v.regex(/^[A-Z]+=/)))),
  Entrypoint: v.optional(v.array(text)),
  Cmd: v.optional(v.array(text)),
  User: v.optional(text),
  Labels: v.record(text, text),
  ExposedPorts: v.optional(v.record(port, v.strictObject({}))),
  HostConfig: v.strictObject({
    Privileged: v.optional(v.boolean()),
    SecurityOpt: v.optional(v.array(text)),
    ReadonlyRootfs: v.boolean(),
    CapDrop: v.optional(v.array(text)),
    NanoCpus: v.optional(v.pipe(v.number(), v.integer())),
    Memory: v.pipe(v.number(), v.integer(), v.minValue(6 << 20)),
    RestartPolicy: v.strictObject({ Name: v.picklist(['no', 'on-failure', 'always', 'unless-stopped']) }),
    Sysctls: v.optional(v.record(text, text)),
    Mounts: v.optional(v.array(Mount)),
    PortBindings: v.optional(
      v.record(port, v.array(v.strictObject({ HostIp: v.pipe(text, v.ipv4()), HostPort: v.pipe(text, v.digits()) }))),
    ),
    NetworkMode: text,
  }),
  NetworkingConfig: v.strictObject({
    EndpointsConfig: v.record(text, v.strictObject({ IPAMConfig: v.strictObject({ IPv4Address: v.pipe(text, v.ipv4()) }) })),
  }),
})
export type ContainerBody = v.InferOutput<typeof ContainerBody>
