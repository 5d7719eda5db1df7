import type { Area } from '../../os/area.ts'
import { block } from '../../os/block/block.ts'
import { cluster } from '../../os/cluster/cluster.ts'
import { config } from '../../os/config/config.ts'
import { cri } from '../../os/cri/cri.ts'
import { diagnosis } from '../../os/diagnosis/diagnosis.ts'
import { etcd } from '../../os/etcd/etcd.ts'
import { files } from '../../os/files/files.ts'
import { hardware } from '../../os/hardware/hardware.ts'
import { k8s } from '../../os/k8s/k8s.ts'
import { kubespan } from '../../os/kubespan/kubespan.ts'
import { lifecycle } from '../../os/lifecycle/lifecycle.ts'
import { network } from '../../os/network/network.ts'
import { runtime } from '../../os/runtime/runtime.ts'
import { secrets } from '../../os/secrets/secrets.ts'
import { security } from '../../os/security/security.ts'
import { siderolink } from '../../os/siderolink/siderolink.ts'
import { telemetry } from '../../os/telemetry/telemetry.ts'
import { time } from '../../os/time/time.ts'

/** Everything the operating system consists of. */
export const areas: readonly Area[] = [
  config,
  files,
  network,
  time,
  runtime,
  telemetry,
  secrets,
  cri,
  etcd,
  k8s,
  cluster,
  block,
  hardware,
  kubespan,
  security,
  siderolink,
  lifecycle,
  diagnosis,
]
