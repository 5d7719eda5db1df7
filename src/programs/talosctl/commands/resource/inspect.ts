import { Command } from 'commander'
import { inspect as wire } from '../../../../rpc/enums.ts'
import type { inspect as messages } from '../../../../rpc/messages.ts'
import type { Cluster } from '../../cluster.ts'
import type { Io } from '../../io.ts'

interface DependenciesOptions {
  withResources?: boolean
}

/** talosctl inspect */
export const inspect = (io: Io, cluster: Cluster) =>
  new Command().description('Look into the machinery of a node.').addCommand(
    new Command('dependencies')
      .description('Write how controllers depend on each other as a graph for graphviz.')
      .option('--with-resources', 'with the resources between them')
      .action((options: DependenciesOptions) => runDependencies(io, cluster, options)),
  )

/** Writes the graph of the one named node. */
export async function runDependencies(io: Io, cluster: Cluster, { withResources }: DependenciesOptions): Promise<void> {
  await cluster.single('inspect dependencies')
  const [dependency] = await cluster.ask('inspect.InspectService/ControllerRuntimeDependencies', {})
  const edges = dependency?.edges ?? []
  const lines = withResources ? withNodes(edges) : direct(edges)
  io.stdout.write(`digraph {\n  rankdir=LR;\n  node [shape=box];\n${[...new Set(lines)].map((line) => `  ${line}\n`).join('')}}\n`)
}

type Edge = messages.ControllerDependencyEdge

const outputs: readonly number[] = [wire.DependencyEdgeType.OUTPUT_EXCLUSIVE, wire.DependencyEdgeType.OUTPUT_SHARED]

function withNodes(edges: readonly Edge[]): string[] {
  return edges.flatMap((edge) => {
    const resource = edge.resourceId ? `${edge.resourceType}:${edge.resourceId}` : edge.resourceType
    const shape = `${quoted(resource)} [shape=ellipse];`
    const style = edge.edgeType === wire.DependencyEdgeType.INPUT_WEAK ? ' [style=dotted]' : ''
    const shared = edge.edgeType === wire.DependencyEdgeType.OUTPUT_SHARED ? ' [style=dashed]' : ''
    return outputs.includes(edge.edgeType)
      ? [shape, `${quoted(edge.controllerName)} -> ${quoted(resource)}${shared};`]
      : [shape, `${quoted(resource)} -> ${quoted(edge.controllerName)}${style};`]
  })
}

function direct(edges: readonly Edge[]): string[] {
  const writers = edges.filter(({ edgeType }) => outputs.includes(edgeType))
  const readers = edges.filter(({ edgeType }) => !outputs.includes(edgeType))
  return readers.flatMap((reader) =>
    writers
      .filter(({ resourceType }) => resourceType === reader.resourceType)
      .map((writer) => `${quoted(writer.controllerName)} -> ${quoted(reader.controllerName)} [label=${quoted(reader.resourceType)}];`),
  )
}

function quoted(text: string): string {
  return JSON.stringify(text)
}
