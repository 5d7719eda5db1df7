/** The first document of a configuration: the machine and its cluster. Its sections are declared in their areas. */
import type * as v from 'valibot'
import { described, flag, oneOf, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { machineDiskRules, machineDisks, systemDiskEncryption } from '../../block/documents/machine-disks.ts'
import { membershipFields, membershipRules } from '../../cluster/documents/discovery.ts'
import { machineRegistries } from '../../cri/documents/machine-registries.ts'
import { etcd, etcdRules } from '../../etcd/documents/etcd.ts'
import { machineFileRules, machineFiles } from '../../files/documents/machine-files.ts'
import { clusterKubernetesFields, clusterKubernetesRules } from '../../k8s/documents/control-plane.ts'
import { machineNodeFields, machineNodeRules } from '../../k8s/documents/kubelet.ts'
import { install, installRules } from '../../lifecycle/documents/install.ts'
import { machineNetwork, machineNetworkRules } from '../../network/documents/machine-network.ts'
import { machineRuntimeFields, machineRuntimeRules } from '../../runtime/documents/machine-runtime.ts'
import { machineSecretFields, secretRules } from '../../secrets/documents/machine-secrets.ts'
import { machineTime } from '../../time/documents/time-sync.ts'
import { featureRules, features } from './features.ts'

/** `machine`. */
export const machine = section({
  type: described(text, 'The type of the machine: controlplane or worker.'),
  ...machineSecretFields,
  ...machineNodeFields,
  network: described(machineNetwork, 'Names, links and addresses of the machine, in one section.'),
  disks: described(machineDisks, 'More disks, their partitions and where they are mounted.'),
  install: described(install, 'What is installed on which disk.'),
  files: machineFiles,
  time: described(machineTime, 'Where the time comes from.'),
  registries: described(machineRegistries, 'Where images come from.'),
  systemDiskEncryption: described(systemDiskEncryption, 'Encrypts volumes of the system.'),
  features: described(features, 'Optional features.'),
  ...machineRuntimeFields,
})

/** `cluster`. */
export const cluster = section({
  ...membershipFields,
  ...clusterKubernetesFields,
  etcd: described(etcd, 'The database of the control plane.'),
})

/** The v1alpha1 document: recognized by its keys, for it has no kind. */
export const V1Alpha1 = defineDocument({
  kind: 'v1alpha1',
  apiVersion: '',
  description: 'The machine and the cluster it belongs to.',
  schema: section({
    version: described(oneOf('v1alpha1'), 'The form of this document.'),
    debug: described(flag, 'Send debug logs to the console.'),
    persist: described(flag, 'Kept for old configurations: only true is accepted.'),
    machine: described(machine, 'The machine this configuration is for.'),
    cluster: described(cluster, 'The cluster the machine belongs to; the same on all its machines.'),
  }),
  rules(document, report, mode) {
    const { machine, cluster } = document
    if (document.persist === false) report.error(['persist'], '"persist: false" is not supported')
    if (!machine) report.error(['machine'], 'the section is required')
    if (!cluster) report.error(['cluster'], 'the section is required')
    if (!machine || !cluster) return
    const type = machineType(document)
    const isWorker = type === 'worker'
    if (!machineTypes.includes(machine.type ?? '')) {
      if (machine.type && machine.type !== 'join')
        report.error(['machine', 'type'], `${JSON.stringify(machine.type)} is not one of controlplane, worker`)
      else report.warning(['machine', 'type'], `${machine.type ? '"join"' : 'no type'} means "worker": say so`)
    }
    secretRules(document, report, isWorker)
    installRules(machine.install, report, mode)
    featureRules(machine.features, report, mode, isWorker)
    if (machine.network) machineNetworkRules(machine.network, report, isWorker)
    machineDiskRules(machine, report)
    machineNodeRules(machine, report)
    machineFileRules(machine.files, report)
    machineRuntimeRules(machine, report)
    membershipRules(cluster, report)
    clusterKubernetesRules(cluster, report)
    etcdRules(cluster.etcd, report, isWorker)
    if (machine.network?.kubespan?.enabled && !(cluster.discovery?.enabled && cluster.id && cluster.secret)) {
      report.error(['machine', 'network', 'kubespan'], 'needs "cluster.discovery.enabled: true", "cluster.id" and "cluster.secret"')
    }
  },
})

/** The v1alpha1 document after decoding; keyed like its YAML, everything optional. */
export type V1Alpha1Document = v.InferOutput<typeof V1Alpha1.schema>

const machineTypes = ['init', 'controlplane', 'worker']

/** The machine type; an empty type means a worker. */
export function machineType(document: V1Alpha1Document): 'init' | 'controlplane' | 'worker' {
  const type = document.machine?.type
  return type === 'init' || type === 'controlplane' ? type : 'worker'
}
