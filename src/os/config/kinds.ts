/** All kinds of configuration documents, each declared in its area. */
import type { DocumentKind } from '../../document/kind.ts'
import { DiskRecoveryConfig } from '../block/documents/disk-recovery.ts'
import { ExistingVolumeConfig, ExternalVolumeConfig } from '../block/documents/found-volume.ts'
import { RawVolumeConfig, SwapVolumeConfig, UserVolumeConfig, VolumeConfig } from '../block/documents/volume.ts'
import { ZswapConfig } from '../block/documents/zswap.ts'
import { ImageVerificationConfig } from '../cri/documents/image-verification.ts'
import { RegistryAuthConfig, RegistryMirrorConfig, RegistryTLSConfig } from '../cri/documents/registry.ts'
import { EtcdBackupConfig } from '../etcd/documents/etcd-backup.ts'
import { EtcdBackupStoreConfig } from '../etcd/documents/etcd-backup-store.ts'
import { PCIDriverRebindConfig } from '../hardware/documents/pci-driver-rebind.ts'
import { KubeSpanConfig, KubeSpanEndpointsConfig } from '../kubespan/documents/kubespan.ts'
import { BondConfig } from '../network/documents/bond.ts'
import { BridgeConfig } from '../network/documents/bridge.ts'
import { DHCPv4Config, DHCPv6Config } from '../network/documents/dhcp.ts'
import { DummyLinkConfig } from '../network/documents/dummy-link.ts'
import { EthernetConfig } from '../network/documents/ethernet.ts'
import { NetworkDefaultActionConfig, NetworkRuleConfig } from '../network/documents/firewall.ts'
import { HostnameConfig } from '../network/documents/hostname.ts'
import { LinkAliasConfig, LinkConfig } from '../network/documents/link.ts'
import { ResolverConfig, StaticHostConfig } from '../network/documents/resolver.ts'
import { BlackholeRouteConfig, RoutingRuleConfig } from '../network/documents/routing.ts'
import { TCPProbeConfig } from '../network/documents/tcp-probe.ts'
import { HCloudVIPConfig, Layer2VIPConfig } from '../network/documents/vip.ts'
import { VLANConfig, VRFConfig } from '../network/documents/virtual-link.ts'
import { WireguardConfig } from '../network/documents/wireguard.ts'
import { EnvironmentConfig } from '../runtime/documents/environment.ts'
import { ExtensionServiceConfig } from '../runtime/documents/extension-service.ts'
import { OOMConfig } from '../runtime/documents/oom.ts'
import { WatchdogTimerConfig } from '../runtime/documents/watchdog-timer.ts'
import { KubernetesKeysConfig } from '../secrets/documents/kubernetes-keys.ts'
import { SiblingKeysConfig } from '../secrets/documents/sibling-keys.ts'
import { TrustedRootsConfig } from '../secrets/documents/trusted-roots.ts'
import { ImageTrustedRootConfig } from '../security/documents/image-trusted-root.ts'
import { SideroLinkConfig } from '../siderolink/documents/siderolink.ts'
import { EventSinkConfig, KmsgLogConfig } from '../telemetry/documents/event-sink.ts'
import { TelemetryConfig } from '../telemetry/documents/telemetry.ts'
import { TimeSyncConfig } from '../time/documents/time-sync.ts'
import { V1Alpha1 } from './documents/v1alpha1.ts'

const kinds: readonly DocumentKind[] = [
  V1Alpha1,
  BlackholeRouteConfig,
  BondConfig,
  BridgeConfig,
  DHCPv4Config,
  DHCPv6Config,
  DiskRecoveryConfig,
  DummyLinkConfig,
  EnvironmentConfig,
  EtcdBackupConfig,
  EtcdBackupStoreConfig,
  EthernetConfig,
  EventSinkConfig,
  ExistingVolumeConfig,
  ExtensionServiceConfig,
  ExternalVolumeConfig,
  HCloudVIPConfig,
  HostnameConfig,
  ImageTrustedRootConfig,
  ImageVerificationConfig,
  KmsgLogConfig,
  KubeSpanConfig,
  KubeSpanEndpointsConfig,
  KubernetesKeysConfig,
  Layer2VIPConfig,
  LinkAliasConfig,
  LinkConfig,
  NetworkDefaultActionConfig,
  NetworkRuleConfig,
  OOMConfig,
  PCIDriverRebindConfig,
  RawVolumeConfig,
  RegistryAuthConfig,
  RegistryMirrorConfig,
  RegistryTLSConfig,
  ResolverConfig,
  RoutingRuleConfig,
  SiblingKeysConfig,
  SideroLinkConfig,
  StaticHostConfig,
  SwapVolumeConfig,
  TCPProbeConfig,
  TelemetryConfig,
  TimeSyncConfig,
  TrustedRootsConfig,
  UserVolumeConfig,
  VLANConfig,
  VRFConfig,
  VolumeConfig,
  WatchdogTimerConfig,
  WireguardConfig,
  ZswapConfig,
]

/** Every kind by its name. */
export const documentKinds: ReadonlyMap<string, DocumentKind> = new Map(kinds.map((kind) => [kind.kind, kind]))

/** Kinds that share one namespace of names: two of them cannot have the same one. */
export const exclusiveKinds: readonly (readonly DocumentKind[])[] = [
  [BondConfig, BridgeConfig, DummyLinkConfig, LinkConfig, VLANConfig, VRFConfig, WireguardConfig],
  [ExistingVolumeConfig, ExternalVolumeConfig, UserVolumeConfig],
  [HCloudVIPConfig, Layer2VIPConfig],
]
