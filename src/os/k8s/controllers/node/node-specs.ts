import { defineController, exclusive, shared, weak } from '../../../../cosi/controller.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { ExtensionStatus } from '../../../runtime/resources/extension-status.ts'
import { MachineStatus } from '../../../runtime/resources/machine-status.ts'
import { inEffect } from '../../component/settings.ts'
import { isControlPlane, kubernetesConfigOf } from '../../machine-config.ts'
import { ComponentFallback } from '../../resources/component.ts'
import { NodeAnnotationSpec, NodeCordonedSpec, NodeLabelSpec, NodeTaintSpec } from '../../resources/node.ts'

const controlPlaneKey = 'node-role.kubernetes.io/control-plane'

type Extensions = Iterable<{ readonly spec: { readonly metadata: { readonly name: string; readonly version: string } } }>

const labelValue = /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$/

/** The version of each extension of the image by the key on the Node: those that may be values of labels, or the others. */
const ofExtensions = (extensions: Extensions, labels: boolean): Record<string, string> =>
  Object.fromEntries(
    [...extensions]
      .map(({ spec: { metadata } }) => [`extensions.talos.dev/${metadata.name}`, metadata.version] as const)
      .filter(([, version]) => labelValue.test(version) === labels),
  )

/** The desired labels of the node. */
export const configNodeLabels = defineController({
  name: 'k8s.NodeLabelSpecController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), extensions: weak(ExtensionStatus) },
  outputs: { labels: exclusive(NodeLabelSpec) },
  reconcile({ config, extensions, labels }) {
    const machineConfig = kubernetesConfigOf(config.get('v1alpha1'))
    if (!machineConfig) return
    const own = isControlPlane(machineConfig) ? { [controlPlaneKey]: '' } : {}
    for (const [key, value] of Object.entries({ ...own, ...ofExtensions(extensions.list(), true), ...machineConfig.machine?.nodeLabels }))
      labels.put(key, { key, value: String(value ?? '') })
  },
})

/** The desired annotations of the node. */
export const configNodeAnnotations = defineController({
  name: 'k8s.NodeAnnotationSpecController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), extensions: weak(ExtensionStatus) },
  outputs: { annotations: shared(NodeAnnotationSpec) }, // discovery adds some too
  reconcile({ config, extensions, annotations }) {
    const machineConfig = kubernetesConfigOf(config.get('v1alpha1'))
    if (!machineConfig) return
    const given = { ...ofExtensions(extensions.list(), false), ...machineConfig.machine?.nodeAnnotations }
    for (const [key, value] of Object.entries(given)) annotations.put(key, { key, value: String(value ?? '') })
  },
})

/** The desired taints of the node, which the kubelet starts with: a control plane node takes no ordinary pods unless allowed. */
export const configNodeTaints = defineController({
  name: 'k8s.NodeTaintSpecController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), fallbacks: weak(ComponentFallback, { id: 'kubelet' }) },
  outputs: { taints: exclusive(NodeTaintSpec) },
  reconcile({ config, fallbacks, taints }) {
    const machineConfig = inEffect('kubelet', kubernetesConfigOf(config.get('v1alpha1')), fallbacks.get('kubelet'))
    if (!machineConfig) return
    const { machine, cluster } = machineConfig
    const allowed = cluster?.allowSchedulingOnControlPlanes ?? cluster?.allowSchedulingOnMasters ?? false
    if (isControlPlane(machineConfig) && !allowed) taints.put(controlPlaneKey, { key: controlPlaneKey, effect: 'NoSchedule', value: '' })
    for (const [key, text] of Object.entries(machine?.nodeTaints ?? {})) {
      // `effect` or `value:effect`
      const at = text.lastIndexOf(':')
      taints.put(key, { key, effect: text.slice(at + 1), value: at < 0 ? '' : text.slice(0, at) })
    }
  },
})

const ending = new Set(['shutting down', 'upgrading', 'resetting'])

/** Cordons the node while it is shutting down. */
export const configNodeCordon = defineController({
  name: 'k8s.NodeCordonedSpecController',
  effects: 'none',
  inputs: { machine: weak(MachineStatus, { id: 'machine' }) },
  outputs: { cordon: exclusive(NodeCordonedSpec) },
  reconcile({ machine, cordon }) {
    const stage = machine.get('machine')?.spec.stage
    if (stage && ending.has(stage)) cordon.put('cordoned', {})
  },
})
