import type { Input, Output } from '../../../cosi/controller.ts'
import type { Runtime } from '../../../cosi/runtime.ts'
import { inspect as enums } from '../../../rpc/enums.ts'
import { readers, unary } from '../../../rpc/server/method.ts'

const edges = enums.DependencyEdgeType
const inputEdge = { weak: edges.INPUT_WEAK, strong: edges.INPUT_STRONG, 'destroy-ready': edges.INPUT_DESTROY_READY } as const
const outputEdge = { exclusive: edges.OUTPUT_EXCLUSIVE, shared: edges.OUTPUT_SHARED } as const

/** What every controller reads and writes, as the edges of a graph. */
export const controllerDependencies = ({ runtime }: { runtime: Pick<Runtime, 'controllers'> }) =>
  unary('inspect.InspectService/ControllerRuntimeDependencies', readers, () => ({
    messages: [
      {
        edges: runtime.controllers().flatMap(({ controller: { name, inputs, outputs }, state }) => [
          ...Object.values<Output>(outputs).map(({ kind, type }) => ({
            controllerName: name,
            edgeType: outputEdge[kind],
            resourceType: type.type,
          })),
          ...[...Object.values<Input>(inputs), ...state.alsoReads].map(({ kind, type, namespace, id }) => ({
            controllerName: name,
            edgeType: inputEdge[kind],
            resourceNamespace: namespace,
            resourceType: type.type,
            resourceId: id ?? '',
          })),
        ]),
      },
    ],
  }))
