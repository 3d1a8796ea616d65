/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log-ids.h - the journal's MESSAGE_ID of each transition that an operator may want to act on.
 *
 * Never reused for anything else: alerts are written for them. Each has an entry in units/iotraced.catalog, which
 * tests/unit/test-catalog.sh checks.
 */
#pragma once

#define LOG_ID_RECORDING "207dac50eef8458eaf0b2be1eeadbf76"
#define LOG_ID_STOPPING "166a678405724dc2962eeb9a79ff9ff1"
#define LOG_ID_RELOADED "e3a949ced4514f6a99e35d04452b0e1a"
#define LOG_ID_RELOAD_REFUSED "719379602a4949ec9c86e78b494034b8"
#define LOG_ID_LOST "be8fcd6afaa44ccf8729b1cbba68d503"
#define LOG_ID_WRITE_FAILS "00b3d3dac2624197841ee4f9644e7614"
#define LOG_ID_WRITE_WORKS "591525d2ead94ed6896f19a7561f135c"
#define LOG_ID_UNBALANCED "da78d54abe234c50b4090ea0683044c4"
#define LOG_ID_SYNC_FAILED "84187b3fe10d4fb28f7ff401e46e4626"
#define LOG_ID_UNSHIPPED "ad59b5159e354cbc8be56430233a687f"
#define LOG_ID_STALLED "1d8f8feefa854636b0f1f1e1dd7a2da9"
