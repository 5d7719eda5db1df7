import { createHash } from 'node:crypto'
import { type Controller, defineController, exclusive } from '../../../../cosi/controller.ts'
import { contacts } from '../../../contacts.ts'
import { type KubeletFileSystem, kubeletAccess } from '../../kubelet/files.ts'
import { KubeletKubeconfig } from '../../resources/kubelet.ts'

/** Poll intervals in milliseconds: while the file is missing, and afterwards. */
const searchPeriod = 500
const calmPeriod = 30_000

/** Whether the kubelet has its kubeconfig, and a hash that changes with it. */
export const observeKubeletKubeconfig = ({ files }: { files: Pick<KubeletFileSystem, 'readTextIfThere'> }): Controller =>
  defineController({
    name: 'k8s.KubeletKubeconfigController',
    contacts: contacts.controlPlane,
    inputs: {},
    outputs: { kubeconfig: exclusive(KubeletKubeconfig) },
    reconcile({ kubeconfig, wakeIn }) {
      const access = kubeletAccess(files)
      wakeIn(access ? calmPeriod : searchPeriod)
      if (access) kubeconfig.put('kubelet', { hash: createHash('sha256').update(JSON.stringify(access)).digest('hex') })
    },
  })
