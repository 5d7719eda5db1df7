/** Types of events in the log of the firmware (TCG PC Client Platform Firmware Profile, section 10.4.1). */
export const eventTypes = {
  EV_PREBOOT_CERT: 0x00,
  EV_POST_CODE: 0x01,
  EV_UNUSED: 0x02,
  EV_NO_ACTION: 0x03,
  EV_SEPARATOR: 0x04,
  EV_ACTION: 0x05,
  EV_EVENT_TAG: 0x06,
  EV_S_CRTM_CONTENTS: 0x07,
  EV_S_CRTM_VERSION: 0x08,
  EV_CPU_MICROCODE: 0x09,
  EV_PLATFORM_CONFIG_FLAGS: 0x0a,
  EV_TABLE_OF_DEVICES: 0x0b,
  EV_COMPACT_HASH: 0x0c,
  EV_IPL: 0x0d,
  EV_IPL_PARTITION_DATA: 0x0e,
  EV_NONHOST_CODE: 0x0f,
  EV_NONHOST_CONFIG: 0x10,
  EV_NONHOST_INFO: 0x11,
  EV_OMIT_BOOT_DEVICE_EVENTS: 0x12,
  EV_POST_CODE2: 0x13,
  EV_EFI_VARIABLE_DRIVER_CONFIG: 0x80000001,
  EV_EFI_VARIABLE_BOOT: 0x80000002,
  EV_EFI_BOOT_SERVICES_APPLICATION: 0x80000003,
  EV_EFI_BOOT_SERVICES_DRIVER: 0x80000004,
  EV_EFI_RUNTIME_SERVICES_DRIVER: 0x80000005,
  EV_EFI_GPT_EVENT: 0x80000006,
  EV_EFI_ACTION: 0x80000007,
  EV_EFI_PLATFORM_FIRMWARE_BLOB: 0x80000008,
  EV_EFI_HANDOFF_TABLES: 0x80000009,
  EV_EFI_PLATFORM_FIRMWARE_BLOB2: 0x8000000a,
  EV_EFI_HANDOFF_TABLES2: 0x8000000b,
  EV_EFI_VARIABLE_BOOT2: 0x8000000c,
  EV_EFI_GPT_EVENT2: 0x8000000d,
  EV_EFI_HCRTM_EVENT: 0x80000010,
  EV_EFI_VARIABLE_AUTHORITY: 0x800000e0,
  EV_EFI_SPDM_FIRMWARE_BLOB: 0x800000e1,
  EV_EFI_SPDM_FIRMWARE_CONFIG: 0x800000e2,
  EV_EFI_SPDM_DEVICE_POLICY: 0x800000e3,
  EV_EFI_SPDM_DEVICE_AUTHORITY: 0x800000e4,
} as const

/** A type by its name. */
export type EventTypeName = keyof typeof eventTypes

const names = new Map<number, EventTypeName>(Object.entries(eventTypes).map(([name, number]) => [number, name as EventTypeName]))

/** The name of a type; its number where the specification has none. */
export const eventTypeName = (type: number): string => names.get(type) ?? `0x${type.toString(16).padStart(8, '0')}`
