import { access } from 'node:fs/promises'
import { toDuration } from '../../../../rpc/proto-time.ts'
import { allRoles, isRole } from '../../../../wire/x509/roles.ts'
import type { Cluster } from '../../cluster.ts'
import { UsageError } from '../../failure.ts'
import { type Io, remark } from '../../io.ts'
import { openTalosconfig, saveTalosconfig } from '../../talosconfig/file.ts'
import { parseTalosconfig } from '../../talosconfig/talosconfig.ts'

/** What the new certificate allows, and for how many milliseconds. */
export interface NewOptions {
  roles?: string[]
  crtTtl: number
}

/** Requests a new client certificate and writes it, with the endpoints and nodes of the current context. */
export async function newConfig(io: Io, cluster: Cluster, path: string, options: NewOptions): Promise<void> {
  const roles = options.roles?.length ? options.roles : ['os:admin']
  const unknown = roles.find((role) => !isRole(role))
  if (unknown) throw new UsageError(`"${unknown}" is not a role: there are ${allRoles.join(', ')}`)
  const there = await access(path).then(
    () => true,
    () => false,
  )
  if (there) throw new UsageError(`"${path}" is there already: choose another path`)
  const crtTtl = toDuration(options.crtTtl)
  const [message] = await cluster.ask('machine.MachineService/GenerateClientConfiguration', { roles, crtTtl })
  if (!message) throw new Error('no node answered')
  const made = await parseTalosconfig(new TextDecoder().decode(message.talosconfig), 'the answer')
  const target = await cluster.target()
  const file = await openTalosconfig({ env: io.env }, path)
  file.document.setIn(['context'], made.context)
  for (const [name, context] of Object.entries(made.contexts)) {
    const { ca, crt, key } = context
    const value = { endpoints: [...target.endpoints], ...(target.nodes.length && { nodes: [...target.nodes] }), ca, crt, key }
    file.document.setIn(['contexts', name], file.document.createNode(value))
  }
  await saveTalosconfig(file)
  remark(io, `Created ${path}\n`)
}
