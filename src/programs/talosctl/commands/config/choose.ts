import type { Io } from '../../io.ts'
import { contextOf, openTalosconfig, requireContext, saveTalosconfig } from '../../talosconfig/file.ts'
import type { ConfigFlags } from './config.ts'

/** Makes a context the current one. */
export async function chooseContext(io: Io, flags: ConfigFlags, name: string): Promise<void> {
  const file = await openTalosconfig(io, flags.talosconfig)
  requireContext(file, name)
  file.document.setIn(['context'], name)
  await saveTalosconfig(file)
}

/** Sets the endpoints of the current context. */
export const setEndpoints = (io: Io, flags: ConfigFlags, endpoints: string[]): Promise<void> => setList(io, flags, 'endpoints', endpoints)

/** Sets the nodes of the current context. */
export const setNodes = (io: Io, flags: ConfigFlags, nodes: string[]): Promise<void> => setList(io, flags, 'nodes', nodes)

async function setList(io: Io, flags: ConfigFlags, key: string, values: string[]): Promise<void> {
  const file = await openTalosconfig(io, flags.talosconfig)
  const { name } = contextOf(file, flags.context)
  const items = values.flatMap((value) => value.split(',')).filter((value) => value !== '')
  if (file.config.contexts[name] && !file.document.hasIn(['contexts', name, key]) && file.document.getIn(['contexts', name]) === null) {
    file.document.setIn(['contexts', name], file.document.createNode({}))
  }
  file.document.setIn(['contexts', name, key], file.document.createNode(items))
  await saveTalosconfig(file)
}
